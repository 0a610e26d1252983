"""Rows of a sweep as lazy frames: times, bounds, estimates and memory of every case."""
