"""Chips and dtypes: the typed entries of `chips.yaml` and `dtypes.yaml`, variants resolved, every number with its source."""
