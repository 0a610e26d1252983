"""Errors, exact numbers, and YAML that is bounded and keeps its lines: what every other package stands on."""
