"""How long events take from the log to the moment when their notifications are visible."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.broker.matching.notification_files import NotificationPairs
from tamis.errors import TamisError
from tamis.store.log import Log

SPAN = 60.0  # seconds for which latencies count
_MOST = 4096
_PAUSE = 0.005  # seconds between two measurements: they cost the matching thread nothing then


class Latencies(NamedTuple):
    """Percentiles in milliseconds, of so many measurements."""

    measured: int
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


class LatencyMeter:
    """Notes when notifications become visible; says later how long that took."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock
        self._noted: deque[tuple[float, int]] = deque(maxlen=_MOST)
        self._measured: deque[tuple[float, float]] = deque(maxlen=_MOST)
        self._last = 0.0
        self._lock = threading.Lock()  # each page that is open asks, in a thread of its own

    def found(self, pairs: NotificationPairs) -> None:
        """Notifications are visible. Called by the matching thread."""
        now = self._clock()
        if now - self._last >= _PAUSE:
            self._last = now
            self._noted.append((now, int(pairs.start)))

    def latencies(self) -> Latencies:
        """Those of the last minute."""
        with self._lock:
            return self._latencies()

    def _latencies(self) -> Latencies:
        while self._noted:
            then, number = self._noted.popleft()
            try:
                (section, *_) = self._log.boundaries(number, number + 1)
            except (TamisError, ValueError):  # trimmed meanwhile
                continue
            appended = int(getattr(section, "appended", 0)) / 1e6
            if appended:
                self._measured.append((then, max(0.0, then - appended)))
        oldest = self._clock() - SPAN
        while self._measured and self._measured[0][0] < oldest:
            self._measured.popleft()
        if not self._measured:
            return Latencies(0)
        values = np.array([seconds * 1e3 for _, seconds in self._measured])
        p50, p90, p99 = np.percentile(values, (50, 90, 99)).round(3).tolist()
        return Latencies(len(values), p50, p90, p99)
