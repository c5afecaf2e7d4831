"""Past events for jobs: each source is a subclass of `PastEvents`; and the times of events."""
