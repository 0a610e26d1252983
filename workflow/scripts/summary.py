"""Write the summary of all sweeps."""

import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = str(snakemake.threads)  # polars reads it once, at its import

from rooflines.results.summary import write_summary
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    write_summary(
        snakemake.params.spec, Path(snakemake.input.thresholds).parent, snakemake.output.csv
    )
