"""Engines with the subscriptions of a workload."""

from __future__ import annotations

from typing import Any

from tamis import Engine, Schema
from tamis.match.base import Matcher
from tamis.workload import Workload


def loaded(made: Workload, matcher: str | Matcher = "tamis", **options: Any) -> Engine:
    """An engine with all subscriptions of a workload."""
    engine = Engine(Schema.from_dict(made.schema), matcher, **options)
    engine.subscribe_table(made.subscriptions)
    return engine
