"""Write the combinations that no chip supports."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.run.jobs import write_skipped
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_skipped(snakemake.params.spec, snakemake.output.csv)
