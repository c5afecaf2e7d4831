"""Latencies of the console, asked for by several pages at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tamis.service.console.latency_meter import LatencyMeter


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager")
def test_pages_may_ask_at_once() -> None:
    ticks = count(1)
    log: Any = SimpleNamespace(boundaries=lambda *_: [SimpleNamespace(appended=1_000_000)])
    meter = LatencyMeter(log, lambda: 1.0 + next(ticks) / 100)
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(300):
                meter.found(cast("Any", SimpleNamespace(start=0)))
                meter.latencies()
        except (IndexError, RuntimeError) as why:
            wrong.append(why)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert meter.latencies().measured
