"""Output files: atomic writes, provenance records, Parquet and CSV."""
