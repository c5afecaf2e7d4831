"""The queue of one sink: what waits for it, how fast it is, whether it is left alone."""

from __future__ import annotations

import time
from collections import deque

from tamis.broker.delivery import retries
from tamis.broker.delivery.message import DeliveryAttempt, OutgoingMessage

PER_SINK = 4  # requests to one sink at once
PATIENCE = 1.0  # seconds that a message may wait in memory for its turn
_WEIGHT = 0.2  # of the last request in the mean time of a request
_LONGEST_PAUSE = 3600.0  # seconds for which a whole sink is left alone on its request


class SinkQueue:
    """Messages to one URL that wait, and what is known about the receiver.

    After some failures in a row the sink is left alone for a while, and then gets one request to
    show whether it works again.
    """

    def __init__(self) -> None:
        self.waiting: deque[OutgoingMessage] = deque()
        self.under_way: dict[OutgoingMessage, float] = {}  # with the time of their start
        self.failures = 0  # in a row
        self.open_until = 0.0
        self._mean = 0.0  # seconds of a request

    @property
    def is_open(self) -> bool:
        """Whether the sink is left alone now."""
        return self.open_until > time.monotonic()

    @property
    def may_send(self) -> bool:
        most = 1 if self.failures >= retries.OPEN_AFTER else PER_SINK
        return bool(self.waiting) and len(self.under_way) < most

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known about the sink that would be missed."""
        return not (self.waiting or self.under_way or self.failures or self.is_open)

    def delay(self) -> float:
        """How many seconds a further message would wait for its turn, about."""
        now = time.monotonic()
        if self.open_until > now:
            return self.open_until - now
        # A request that hangs says as much as one that was slow.
        oldest = min(self.under_way.values(), default=now)
        ahead = max(0, len(self.waiting) + len(self.under_way) - PER_SINK + 1)
        return ahead * max(self._mean, now - oldest) / PER_SINK

    def note(self, message: OutgoingMessage, attempt: DeliveryAttempt) -> None:
        """Take in how a request went."""
        now = time.monotonic()
        took = now - self.under_way.pop(message)
        self._mean = took if not self._mean else (1 - _WEIGHT) * self._mean + _WEIGHT * took
        if attempt.delivered:
            self.failures, self.open_until = 0, 0.0
            return
        self.failures += 1
        if self.failures >= retries.OPEN_AFTER:
            self.open_until = now + retries.OPEN_FOR
        if attempt.asked is not None:  # the receiver asks for a pause, not only of this message
            self.open_until = max(self.open_until, now + min(attempt.asked, _LONGEST_PAUSE))
