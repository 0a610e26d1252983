"""Fits: tables of timings, and the numbers fitted to them: nominal times become estimates."""
