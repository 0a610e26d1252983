"""Rows as lazy frames: operations, steps, requests, training."""
