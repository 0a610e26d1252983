"""Tests with a SLURM cluster and an S3 server on this machine: `make test-engines` runs them."""
