"""Write the folder to publish."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(
    max(1, snakemake.threads - 1)
)  # polars reads it once, when it is imported; Vega takes the other

from rooflines.results.records import recording
from rooflines.run.log import job_log
from rooflines.site.site import write_bundle

inputs = [*snakemake.input.charts, snakemake.input.thresholds]
with job_log(snakemake.log[0]), recording(spec=snakemake.params.code, inputs=inputs):
    write_bundle(snakemake.output.site, snakemake.input.charts, snakemake.input.thresholds)
