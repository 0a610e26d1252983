"""Measuring: timings of matmuls on this machine, and its peak and memory rate."""
