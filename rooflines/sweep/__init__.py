"""Sweeps: axes of sizes, splits, cases that chips support, and checks, before rows are computed."""
