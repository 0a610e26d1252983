"""Workbook: the results for a spreadsheet, of bounded size."""


rule workbook:
    """Critical sizes, thresholds, formulas, models, chips and columns as sheets; no table is read."""
    input:
        thresholds="<results>/thresholds.parquet",
        model_thresholds=expand("<results>/{file}", file=plan.model_thresholds()[:1]),
        model_shapes="<results>/model-shapes.csv",
    output:
        xlsx="<results>/rooflines.xlsx",
    log:
        "<results>/logs/workbook.log",
    # Long, on one core: it runs beside the tables, so that the charts find all cores free.
    priority: 1
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.workbook_spec,
    run:
        run_job(
            "workbook.workbook.write_workbook",
            log[0],
            threads,
            params.spec,
            [input.thresholds, *input.model_thresholds],
            input.model_shapes,
            output.xlsx,
        )
