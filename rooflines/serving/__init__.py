"""Whole models on chips: kernels of a step, their times, tables, thresholds and requests."""
