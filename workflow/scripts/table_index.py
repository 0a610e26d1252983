"""Write the lists of all parts and delete parts that are in no sweep."""

import os

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.results.table_index import write_indexes
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    paths = dict(snakemake.output.items())
    specs = {folder: snakemake.params[folder] for folder in paths}
    write_indexes(specs, paths, snakemake.params.measured)
