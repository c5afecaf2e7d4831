"""DataFrames: `match`, `validate` and `from_json`."""
