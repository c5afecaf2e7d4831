"""Matchers: algorithms over terms. `base` defines the interface, `registry` lists them."""
