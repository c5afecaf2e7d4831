"""Notifications by webhook: signed, retried, and never sent into the service's own network."""
