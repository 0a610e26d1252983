"""Write the site to publish."""

import json
import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.results.records import recording
from rooflines.run.log import job_log
from rooflines.site.site import write_bundle

inputs = [*snakemake.input.charts, snakemake.input.thresholds, *snakemake.input.models]
with job_log(snakemake.log[0]), recording(spec=json.loads(snakemake.params.spec), inputs=inputs):
    write_bundle(
        snakemake.output.site,
        snakemake.input.charts,
        snakemake.input.thresholds,
        snakemake.input.models,
        snakemake.params.spec,
    )
