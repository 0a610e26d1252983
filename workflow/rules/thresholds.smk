"""Thresholds: the size from which an operation is compute-bound."""


rule thresholds:
    """The smallest size and the largest number of chips at which an operation is compute-bound: exact
    integers, "never" included.

    In closed form; no table is read. Those of chips that have not changed are kept.
    """
    output:
        parquet="<results>/thresholds.parquet",
    log:
        "<results>/logs/thresholds.log",
    # Long, on one core: it runs beside the tables, so that the charts find all cores free.
    priority: 2
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.spec("thresholds.parquet"),
    run:
        run_job(
            "run.solving.write_thresholds",
            log[0],
            threads,
            params.spec,
            output.parquet,
            STATE,
        )
