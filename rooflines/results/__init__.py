"""What touches files: atomic writes, provenance records, Parquet and CSV."""
