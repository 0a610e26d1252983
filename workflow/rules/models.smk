"""Models: the rows of every sweep of whole models and their kernels, in parts."""


rule model_table:
    """One row per combination of model, phase, chip, dtypes, split and sizes: work, footprint, times,
    tokens per second, cost. Only with `model-sweeps`.
    """
    output:
        table="<results>/models/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/model_table/{sweep}/part-{part}.log",
    threads: 1
    resources:
        mem_mb=650,
    params:
        spec=plan.spec_of("models/{sweep}/part-{part}.parquet"),
    run:
        run_job("run.jobs.write_part", log[0], threads, resources.mem_mb, params.spec, output.table)


rule layer_table:
    """The kernels of the rows of models, one row each. Only with `model-sweeps`."""
    output:
        table="<results>/layers/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/layer_table/{sweep}/part-{part}.log",
    threads: 1
    resources:
        mem_mb=650,
    params:
        spec=plan.spec_of("layers/{sweep}/part-{part}.parquet"),
    run:
        run_job("run.jobs.write_part", log[0], threads, resources.mem_mb, params.spec, output.table)
