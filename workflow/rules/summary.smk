"""Summary: what a run found, by chip, dtypes and sharding or split."""


rule summary:
    """For a first look: a row per sweep, chip, dtypes and sharding, of whole models per model, phase and split,
    with the share of compute-bound rows and the least, median and largest critical size.
    """
    input:
        **plan.inputs("summary.csv"),
    output:
        csv="<results>/summary.csv",
    log:
        "<results>/logs/summary.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.spec("summary.csv"),
    run:
        run_job(
            "results.summary.write_summary",
            log[0],
            threads,
            params.spec,
            Path(input.thresholds[0]).parent,
            output.csv,
        )
