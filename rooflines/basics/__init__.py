"""Errors, exact numbers, and bounded YAML that keeps its lines."""
