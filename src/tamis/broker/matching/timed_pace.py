"""How many events are matched at once where operators are called, which may be slow."""

from __future__ import annotations

from tamis.replay.pipeline import BatchPace

AIM = 0.1  # seconds for a batch


class TimedPace(BatchPace):
    """At most so many events at once, and no more than take about a tenth of a second.

    The notifications of a batch come together. So an event without operators waits for the slow
    calls of the events before it, and for few of those after it.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most, most)
        self._limit = most

    def note_seconds(self, events: int, seconds: float) -> None:
        """Choose the next step by how long the last one took."""
        fitting = int(events * AIM / max(seconds, 1e-6))
        self.step = max(1, min(fitting, 4 * self.step, self._limit))
