"""Measurements: timings beside the bound and the estimate of the model."""
