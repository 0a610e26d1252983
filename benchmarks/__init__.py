"""Benchmarks against other tools on the same rows: `make bench` runs them and writes RESULTS.md."""
