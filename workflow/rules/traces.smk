"""Traces: each laid on its bound, as a table of calls, a screen and pictures."""


rule trace:
    """A profiler's trace laid on its bound: calls as a table, and a folder with the screen and the pictures of its
    parts, groups and timeline. Only with `traces`.

    The spec has the digests of its files.
    """
    output:
        table="<results>/tables/traces/{trace}.parquet",
        folder=directory("<results>/traces/{trace}"),
    log:
        "<results>/logs/traces/{trace}.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        spec=plan.spec_of("tables/traces/{trace}.parquet"),
    run:
        run_process(
            "run.trace_jobs.write_trace",
            log[0],
            threads,
            params.spec,
            output.table,
            output.folder,
        )
