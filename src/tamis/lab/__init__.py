"""Experiments: measure, keep, show. A measurement gives plain records and prints nothing."""
