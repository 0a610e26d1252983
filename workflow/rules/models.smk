"""Models: the rows of every sweep of whole models and their kernels, in parts; thresholds; shapes."""


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
        run_job("run.jobs.write_part", log[0], threads, params.spec, output.table, STATE)


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
        run_job("run.jobs.write_part", log[0], threads, params.spec, output.table, STATE)


rule model_thresholds:
    """Of whole models: the smallest compute-bound batch, the longest context that has one, the fewest
    chips, the largest batch within a latency. Only with `model-sweeps`.

    No table is read.
    """
    output:
        parquet="<results>/model-thresholds.parquet",
    log:
        "<results>/logs/model_thresholds.log",
    # Long, on one core: it runs beside the tables, so that the charts find all cores free.
    priority: 2
    threads: 1
    resources:
        mem_mb=1500,
    params:
        spec=plan.spec("model-thresholds.parquet"),
    run:
        run_job(
            "run.solving.write_thresholds",
            log[0],
            threads,
            params.spec,
            output.parquet,
            STATE,
        )


rule model_shapes:
    """The models of the catalogue: parameters by every convention beside the published ones, cache per
    token, source.
    """
    output:
        csv="<results>/model-shapes.csv",
    log:
        "<results>/logs/model_shapes.log",
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=plan.spec("model-shapes.csv"),
    run:
        run_job(
            "results.catalogue_frames.write_model_shapes",
            log[0],
            threads,
            params.spec,
            output.csv,
        )
