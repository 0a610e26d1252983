"""Write the shapes of the models of the catalogue."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.results.model_shapes import write_model_shapes
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_model_shapes(snakemake.params.spec, snakemake.output.csv)
