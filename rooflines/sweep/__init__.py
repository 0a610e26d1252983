"""Sweeps: axes, cases that chips support, splits, checks; no rows, no polars."""
