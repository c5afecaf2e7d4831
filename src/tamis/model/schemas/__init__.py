"""Schemas: their documents, importers and extensions, and what a sample proposes."""
