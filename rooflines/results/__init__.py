"""What touches files: atomic writes, records, Parquet and CSV, provenance."""
