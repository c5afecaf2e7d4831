"""Encoding: values of every domain become ordered int64 codes."""
