"""`metadata_of` and what else reads tables; see `rooflines.results.tables`."""

from rooflines.results.tables import metadata_of, scan

__all__ = ["metadata_of", "scan"]
