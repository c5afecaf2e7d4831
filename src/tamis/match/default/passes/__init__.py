"""Compiled loops that match a batch of events against the structures."""
