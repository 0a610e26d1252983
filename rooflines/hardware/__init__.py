"""Chips and dtypes: typed entries, variants resolved, every number with its source."""
