"""Chips and dtypes: typed entries, variants, plausibility, supported combinations."""
