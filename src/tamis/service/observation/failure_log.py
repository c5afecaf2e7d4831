"""Which parts of a broker fail, and log lines when that begins and ends."""

from __future__ import annotations

from threading import Event, Thread
from typing import Self

import structlog

from tamis.broker.broker import Broker

_LOOK = 1.0  # seconds between two looks
_log = structlog.stdlib.get_logger("tamis.health")


def failing_parts(broker: Broker) -> dict[str, BaseException]:
    """The parts that fail now, and why."""
    parts = {
        "broker": broker.failure,
        "matching": broker.matching.failure,
        "webhooks": broker.webhooks.failure,
        "kafka": broker.webhooks.topics.failure,
    }
    return {part: why for part, why in parts.items() if why is not None}


class FailureLog:
    """Looks at the parts of a broker each second, in a thread of its own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._failing: set[str] = set()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-health", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK):
            self.look()

    def look(self) -> None:
        """Log what has changed since the last look."""
        found = failing_parts(self._broker)
        for part in found.keys() - self._failing:
            why = found[part]
            _log.error("a part fails", part=part, kind=type(why).__name__, why=str(why))
        for part in self._failing - found.keys():
            _log.info("a part works again", part=part)
        self._failing = set(found)
