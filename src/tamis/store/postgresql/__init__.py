"""A log in PostgreSQL that several services append to."""
