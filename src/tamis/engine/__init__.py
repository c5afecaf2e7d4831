"""Schema, encoder, matcher and live subscriptions, in memory, in one process."""

from tamis.engine.engine import Engine

__all__ = ["Engine"]
