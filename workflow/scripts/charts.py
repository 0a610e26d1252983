"""Draw the charts of all families."""

import hashlib
import os
from pathlib import Path

from snakemake.iocontainers import Snakemake

snakemake: Snakemake
os.environ["POLARS_MAX_THREADS"] = "1"  # of each process that draws; read once, at its import

from rooflines.charts.job import write_charts
from rooflines.run.lock import STATE
from rooflines.run.log import job_log

with job_log(snakemake.log[0]):
    results = Path(snakemake.input.thresholds).parent
    # One working directory may have several results: of a workflow that imports this one.
    place = hashlib.sha256(str(results.absolute()).encode()).hexdigest()[:16]
    write_charts(
        snakemake.params.spec,
        results,
        results / "charts",
        STATE / "drawn" / place,
        snakemake.threads,
    )
