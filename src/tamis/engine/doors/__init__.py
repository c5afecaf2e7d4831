"""How events come in: one by one, in batches and tables, as JSON in text."""
