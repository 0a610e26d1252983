"""Charts: a job for each family draws all charts of it, as pictures, specifications and data."""


rule charts:
    """The charts of one family. What decides their numbers stands in `spec`: a table made again just as it was draws nothing anew."""
    input:
        tables=ancient("<results>/tables/index.csv"),
        thresholds=ancient("<results>/thresholds.parquet"),
    output:
        folder=report(
            directory("<results>/charts/{family}"),
            patterns=["{name}-light.png"],
            caption="../report/charts.rst",
            category="Charts",
            subcategory="{family}",
            labels={"chart": "{name}"},
        ),
    log:
        "<results>/logs/charts/{family}.log",
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        spec=plan.family_spec,
    script:
        "../scripts/charts.py"
