"""Past events for jobs: a source is a subclass of `PastEvents`, and tells when its events were."""
