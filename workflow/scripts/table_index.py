"""Write the list of all parts and delete parts that are in no sweep."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.results.table_index import write_index
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_index(snakemake.params.spec, snakemake.output.index)
