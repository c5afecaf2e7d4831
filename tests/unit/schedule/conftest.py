"""Fixtures of the schedulers' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tamis.schedule import registry


@pytest.fixture(autouse=True)
def _own_schedulers() -> Iterator[None]:
    """A scheduler in Python is registered for the test; what the test registers is gone after."""
    before = dict(registry._TABLE)
    path = "tests.unit.schedule.instances:InPython"
    registry.register(registry.SchedulerEntry("in-python", path, "none", "greedy, in Python"))
    yield
    registry._TABLE.clear()
    registry._TABLE.update(before)
