"""Write one part of a sweep's table."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.jobs import rows_of, write_part
from rooflines.run.log import job_log

with job_log(snakemake.log[0], rows_of(snakemake.params.spec)):
    write_part(snakemake.params.spec, snakemake.output.table)
