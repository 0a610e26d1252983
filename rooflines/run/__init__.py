"""A run: plan, jobs, records compared; `run/snakemake` alone knows Snakemake."""
