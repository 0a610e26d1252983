"""Write the thresholds of every sweep of whole models, as Parquet and as CSV."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.jobs import write_model_thresholds
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_model_thresholds(snakemake.params.spec, snakemake.output.parquet, snakemake.output.csv)
