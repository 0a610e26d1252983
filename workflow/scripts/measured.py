"""Write a set of timings joined with the model."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.log import job_log
from rooflines.run.measured_jobs import write_measured

with job_log(snakemake.log[0]):
    write_measured(snakemake.params.spec, snakemake.output.table)
