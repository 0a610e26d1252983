"""Thresholds: the size from which an operation is compute-bound."""


rule thresholds:
    """The critical sizes of every sweep, in closed form; no table is read."""
    output:
        parquet="<results>/thresholds.parquet",
        csv="<results>/thresholds.csv",
    log:
        "<results>/logs/thresholds.log",
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.thresholds_spec,
    script:
        "../scripts/thresholds.py"
