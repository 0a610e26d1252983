"""The sections of the report: each measures, and returns a table with its goals."""
