"""Errors, exact numbers, bounded files, YAML with line numbers, foreign file kinds."""
