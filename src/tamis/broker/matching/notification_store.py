"""What matching asks of the place where notifications are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from tamis.broker.matching.notification_files import NotificationPairs


class NotificationStore(Protocol):
    """The notifications of a log, as far as they are matched. One thread writes; others read."""

    @property
    def begin(self) -> int:
        """The first sequence number whose notifications are kept."""

    @property
    def matched(self) -> int:
        """Notifications of all events before this number are stored."""

    def write(
        self, start: int, end: int, found: list[NotificationPairs], dead: list[pa.Table]
    ) -> None:
        """Store the notifications and dead letters of a range."""

    def read(self, after: int, end: int) -> Iterator[NotificationPairs]:
        """Notifications of events after a number and before `end`, in order."""
