"""Rows as lazy frames: times, bounds, estimates and memory for every case in a sweep."""
