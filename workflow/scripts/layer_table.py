"""Write one part of the table of kernels of a sweep of whole models."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.jobs import rows_of, write_layer_part
from rooflines.run.log import job_log

with job_log(snakemake.log[0], rows_of(snakemake.params.spec)):
    write_layer_part(snakemake.params.spec, snakemake.output.table)
