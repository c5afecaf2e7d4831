"""Schemas, events, conditions, and the semantics: when an event satisfies a condition."""
