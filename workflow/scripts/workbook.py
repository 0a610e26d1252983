"""Write the workbook."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.log import job_log
from rooflines.workbook.workbook import write_workbook

with job_log(snakemake.log[0]):
    write_workbook(
        snakemake.params.spec,
        [Path(file) for file in (snakemake.input.thresholds, *snakemake.input.model_thresholds)],
        Path(snakemake.input.model_shapes),
        snakemake.output.xlsx,
    )
