"""Measurements: timings, made here or read, beside the bound and the estimate of the model."""
