"""Timings made here or read, joined with the model and judged; profiled kernels."""
