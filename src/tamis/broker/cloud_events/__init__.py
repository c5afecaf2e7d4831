"""CloudEvents 1.0: read, bound to attributes of a schema, and written."""
