"""Charts: one job draws those that changed, as pictures, specifications and data."""


rule charts:
    """Charts by kind: PNG, SVG, the Vega-Lite specification (`.vl.json`), its views, and the
    data as CSV and Parquet; other formats and views with `formats:` or `rooflines draw`.
    """
    input:
        **plan.inputs(*plan.paths("charts")),
    output:
        folders=[
            report(
                directory(f"<results>/charts/{family}"),
                patterns=["{name}.png"],
                caption="../report/charts.rst",
                category="Charts",
                subcategory=family,
                labels={"chart": "{name}"},
            )
            for family in plan.families()
        ],
    log:
        "<results>/logs/charts.log",
    # On all cores; the workbook, on one, runs beside the bundle, which waits for the charts.
    priority: 1
    threads: plan.drawing_threads()
    resources:
        mem_mb=lambda wildcards, threads: 500 + 500 * threads,
    params:
        spec=plan.charts_spec(),
    run:
        run_process(
            "charts.chart_job.write_charts",
            log[0],
            1,  # of polars, in each process that draws
            params.spec,
            Path(output.folders[0]).parents[1],
            STATE,
            threads,
        )
