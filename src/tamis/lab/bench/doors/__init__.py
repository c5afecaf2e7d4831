"""What events cost that come in as users have them: a dict, JSON in text, threads, a few rules."""
