"""Timing tables and their public layouts, calibrated times, fits, held-out errors."""
