"""Tables: the rows of every sweep of operations, in parts; lists of all parts; what was skipped."""


rule sweep_table:
    """One row per combination of sizes, dtypes, chips and shards: work, times, bottleneck, intensities."""
    output:
        table="<results>/tables/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/sweep_table/{sweep}/part-{part}.log",
    threads: 1
    resources:
        mem_mb=650,
    params:
        spec=plan.spec_of("tables/{sweep}/part-{part}.parquet"),
    run:
        run_job("run.jobs.write_part", log[0], threads, params.spec, output.table)


rule table_index:
    """All parts with their row counts.

    Its job also deletes outputs of earlier configs.
    """
    input:
        tables=without_download(plan.inputs("tables/index.csv")["tables"], workflow),
    output:
        tables="<results>/tables/index.csv",
        models="<results>/models/index.csv",
        layers="<results>/layers/index.csv",
    log:
        "<results>/logs/table_index.log",
    localrule: True
    threads: 1
    resources:
        mem_mb=500,
    params:
        specs=plan.indexes,
        planned=plan.paths(),
    run:
        run_job(
            "results.table_index.write_indexes",
            log[0],
            threads,
            params.specs,
            dict(output.items()),
            params.planned,
        )


rule skipped:
    """Requested combinations that no chip supports, with the reason; a missing rate is never guessed."""
    output:
        csv="<results>/skipped.csv",
    log:
        "<results>/logs/skipped.log",
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=plan.spec("skipped.csv"),
    run:
        run_job("run.jobs.write_skipped", log[0], threads, params.spec, output.csv)
