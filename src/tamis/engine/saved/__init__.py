"""Engines on disk, and pickled ones."""
