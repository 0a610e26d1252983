"""Typed config schema, and sizes along an axis."""
