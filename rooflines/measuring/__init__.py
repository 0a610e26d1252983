"""Measuring: timings of matmuls on the machine at hand, and its peak and memory rate."""
