"""The routes of HTTP, a file for each kind of thing."""
