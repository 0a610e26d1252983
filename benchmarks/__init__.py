"""Benchmarks against other tools on the same rows: `make bench` runs them."""
