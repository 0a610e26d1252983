"""Errors, exact numbers, bounded files, YAML with line numbers, catalogue cache, file kinds."""
