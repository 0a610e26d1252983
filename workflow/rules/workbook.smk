"""Workbook: the results for a spreadsheet, of bounded size."""


rule workbook:
    """A workbook for a spreadsheet: an operation as formulas of sizes and rates with a chart (What-if),
    critical sizes by chip (Summary), thresholds with filters, the meaning of every column. Sheets name
    the sweeps that are too large for them.

    No table is read.
    """
    input:
        **plan.inputs("rooflines.xlsx"),
    output:
        xlsx="<results>/rooflines.xlsx",
    log:
        "<results>/logs/workbook.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.spec("rooflines.xlsx"),
    run:
        run_job(
            "workbook.workbook.write_workbook",
            log[0],
            threads,
            params.spec,
            [*input.thresholds, *input.model_thresholds],
            output.xlsx,
        )
