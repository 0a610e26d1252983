"""Write the errors of all sets of timings, and the timings without a row."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.log import job_log
from rooflines.run.measured_jobs import write_measured_summary

with job_log(snakemake.log[0]):
    write_measured_summary(
        snakemake.params.spec,
        snakemake.input.tables,
        snakemake.output.csv,
        snakemake.output.skipped,
    )
