"""The stream over a log: its source, its sink, and what goes on beside it."""
