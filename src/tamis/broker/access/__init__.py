"""Who calls: roles, API keys and tickets."""
