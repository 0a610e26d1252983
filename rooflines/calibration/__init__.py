"""Calibrations: numbers fitted to timings, which turn nominal times into an estimate."""
