"""Timings: tables of measured times, their public layouts, and the checks of their values."""
