"""Tables: the rows of every sweep of operations, in parts, and the list of all parts."""


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
        run_job("run.jobs.write_part", log[0], threads, resources.mem_mb, params.spec, output.table)


rule threshold_part:
    """The thresholds of some chips in a sweep."""
    output:
        table="<results>/thresholds/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/threshold_part/{sweep}/part-{part}.log",
    # They take long, on one core: they come first, so that the charts find all cores free.
    priority: 2
    threads: 1
    resources:
        mem_mb=1500,
    params:
        spec=plan.spec_of("thresholds/{sweep}/part-{part}.parquet"),
    run:
        run_job(
            "run.threshold_jobs.write_threshold_part",
            log[0],
            threads,
            resources.mem_mb,
            params.spec,
            output.table,
        )


rule parts:
    """All parts with their row counts."""
    input:
        tables=without_download(plan.inputs("parts.csv")["tables"], workflow),
    output:
        csv="<results>/parts.csv",
    log:
        "<results>/logs/parts.log",
    localrule: True
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=plan.spec("parts.csv"),
    run:
        run_job(
            "results.overview.write_parts",
            log[0],
            threads,
            resources.mem_mb,
            params.spec,
            output.csv,
        )
