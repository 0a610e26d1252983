"""Thresholds: the smallest compute-bound size, and the most compute-bound chips, exactly."""
