"""Matchers: algorithms over terms. `base` has the interface, `registry` the table."""
