"""Write the folder to publish."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, when it is imported

from rooflines.bundle.site import write_bundle
from rooflines.progress import job_log

with job_log(snakemake.log[0]):
    write_bundle(snakemake.output.site, snakemake.input.charts, snakemake.input.thresholds)
