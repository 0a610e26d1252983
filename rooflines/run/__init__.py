"""All that knows Snakemake: the plan of a run, its jobs, crash safety, progress, logs and storage."""
