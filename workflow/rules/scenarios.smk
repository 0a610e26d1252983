"""Scenarios: what their overrides change in thresholds, times and costs."""


rule scenario:
    """Numbers that a scenario changes, a row each, and a folder with groups of them and their picture. Only with
    `scenarios`.
    """
    input:
        unpack(lambda wildcards: plan.inputs(f"scenarios/{wildcards.scenario}")),
    output:
        table="<results>/scenarios/{scenario}.parquet",
        folder=directory("<results>/scenarios/{scenario}"),
    log:
        "<results>/logs/scenarios/{scenario}.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        spec=plan.spec_of("scenarios/{scenario}.parquet"),
    run:
        run_job(
            "run.scenario_jobs.write_scenario",
            log[0],
            threads,
            resources.mem_mb,
            params.spec,
            output.table,
            output.folder,
        )
