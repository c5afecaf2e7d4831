"""Several services on one PostgreSQL: they share the log, records and notifications."""
