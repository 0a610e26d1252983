"""Write the list of all parts and remove those that no sweep has any more."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(
    snakemake.threads
)  # polars reads it once, when it is imported

from rooflines.results.table_index import write_index
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_index(snakemake.params.spec, snakemake.output.index)
