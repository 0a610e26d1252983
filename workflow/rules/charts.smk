"""Charts: one job draws those that changed, as pictures, specifications and data."""


rule charts_digest:
    """A digest of everything that the charts depend on; a change redraws those that it concerns.

    The rule `charts` cannot have it in `params`: Snakemake does not compare the `params` of a job
    whose `ancient` inputs are remade in the same run.
    """
    output:
        digest="<results>/.made/charts.sha256",
    log:
        "<results>/logs/charts.digest.log",
    localrule: True
    threads: 1
    resources:
        mem_mb=100,
    params:
        digest=plan.charts_digest(),
    run:
        run_job("results.atomic.write_bytes", log[0], threads, output.digest, params.digest)


rule charts:
    """Charts by kind: PNG, SVG, the Vega-Lite specification (`.vl.json`), its views, and the
    data as CSV and Parquet; other formats and views with `formats:` or `rooflines draw`.

    A table that is remade unchanged does not redraw them.
    """
    input:
        **{name: ancient(files) for name, files in plan.charts_inputs().items()},
        digest="<results>/.made/charts.sha256",
        index=ancient("<results>/tables/index.csv"),
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
        run_job(
            "run.drawing_jobs.draw_charts",
            log[0],
            1,  # of polars, in each process that draws
            params.spec,
            Path(input.index).parents[1],
            Path(output.folders[0]).parent,
            threads,
        )
