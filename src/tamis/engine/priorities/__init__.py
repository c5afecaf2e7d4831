"""Priorities of subscriptions, and the first match of an event."""
