"""The latest notifications in memory, for readers that are nearly up to date."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition

from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs

KEPT = 2_000_000  # pairs that stay in memory for readers


class NotificationTail:
    """What was found, in memory, with the files behind it. One matcher adds; any number read.

    `found` is called by the matcher with the pairs of each batch; a batch may have no pairs.
    """

    def __init__(
        self,
        files: NotificationFiles,
        matched: int,
        found: Callable[[NotificationPairs], None] = lambda pairs: None,
    ) -> None:
        self._files, self._found = files, found
        self.matched = matched  # the notifications of all events before it are known
        self.changed = Condition()
        self._pairs: deque[NotificationPairs] = deque()
        self._size = 0
        self._ended = False

    def publish(self, pairs: NotificationPairs) -> None:
        """Add the notifications of the next rows."""
        with self.changed:
            before = self._pairs[-1] if self._pairs else None
            if (
                before is not None
                and before.end == pairs.start
                and not len(before.numbers)
                and not len(pairs.numbers)
            ):  # one for all events without notifications in a row
                self._pairs[-1] = before._replace(end=pairs.end)
            else:
                self._pairs.append(pairs)
                self._size += len(pairs.numbers) + 1
            self.matched = pairs.end
            self.changed.notify_all()
        self._found(pairs)

    def advance(self, end: int) -> None:
        """Note that the rows before a number are matched."""
        with self.changed:
            self.matched = end
            self.changed.notify_all()

    def go_back(self, start: int) -> None:
        """Forget what is not in files: another matcher goes on from a number."""
        with self.changed:
            self._pairs.clear()
            self._size = 0
            self.matched = start

    def forget(self, written: int) -> None:
        """Let go of old pairs that are in files: those before a number."""
        with self.changed:
            while self._size > KEPT and self._pairs and self._pairs[0].end <= written:
                self._size -= len(self._pairs.popleft().numbers) + 1

    def end(self) -> None:
        """Let nobody wait any more."""
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def wait(self, sequence: int, seconds: float, failed: Callable[[], bool]) -> int:
        """Wait until the event with a number is matched, or matching has failed."""
        until = time.monotonic() + seconds
        with self.changed:
            while self.matched <= sequence and not self._ended and not failed():
                left = until - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            return self.matched

    def notifications(self, after: int) -> Iterator[NotificationPairs]:
        """All notifications of events after a number, up to where matching is, as they are read."""
        with self.changed:
            start = self._pairs[0].start if self._pairs else self.matched
            tail = [each for each in self._pairs if each.end > after + 1]
        if after + 1 < start:
            yield from self._files.read(after, start)
        for each in tail:
            yield each.after(after)
