"""The redundancy report: which subscriptions of an engine or a file say nothing new."""
