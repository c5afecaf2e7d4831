"""Batch jobs: match parquet files, compile an index, generate tables."""
