"""Measurements: timings joined with the model, and the errors of its bounds and estimates."""


rule measured:
    """Timings, and runs of served models, beside their bound and estimate. Only with `measurements`.

    The spec has the digest of their file.
    """
    output:
        table="<results>/measured/{measurement}.parquet",
    log:
        "<results>/logs/measured/{measurement}.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        spec=plan.spec_of("measured/{measurement}.parquet"),
    run:
        run_job(
            "run.measured_jobs.write_measured",
            log[0],
            threads,
            resources.mem_mb,
            params.spec,
            output.table,
        )


rule measured_summary:
    """Errors by set, model, chip, software, dtypes, number of chips and region; timings without a row or an
    estimate, counted. Only with `measurements`.
    """
    input:
        tables=expand("<results>/{file}", file=plan.paths("measured")),
    output:
        csv="<results>/measured.csv",
        skipped="<results>/measured-skipped.csv",
    log:
        "<results>/logs/measured_summary.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        spec=plan.spec("measured.csv"),
    run:
        run_job(
            "run.measured_jobs.write_measured_summary",
            log[0],
            threads,
            resources.mem_mb,
            params.spec,
            input.tables,
            output.csv,
            output.skipped,
        )
