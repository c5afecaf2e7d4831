"""The broker over the network: HTTP, and what belongs to a server."""
