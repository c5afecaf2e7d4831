"""The notifications of a broker as readers see them, whoever finds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.broker.matching.notification_tail import NotificationTail
from tamis.broker.sequence.sequencer import Committed
from tamis.errors import BrokerError
from tamis.match.plan import Plan
from tamis.operators.report import Report
from tamis.replay.matching_shifts import Shift
from tamis.store.changes import ID_TYPES
from tamis.store.subscription_snapshot import Id


class NotificationFinder(Protocol):
    """What finds notifications, and adds them to the tail."""

    failure: BaseException | None
    full: bool  # the disk: what was found waits in memory

    def feed(self, pack: Committed) -> None:
        """Take a pack that is on disk."""

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now."""

    def report(self) -> Report:
        """The calls of operators."""

    def plan(self, id: Id | None) -> Plan:
        """Where the matcher keeps the subscriptions, or only the clauses of one of them."""

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""

    def stop(self) -> None:
        """Finish, and end."""


class ReadableMatching(ABC):
    """What all ways of matching have in common: files, a tail in memory, and a finder."""

    shift: Shift | None = None  # who matches, where that can be chosen
    _finder: NotificationFinder

    def __init__(self, files: NotificationFiles, tail: NotificationTail, ids: str) -> None:
        self.files, self._tail, self.id_type = files, tail, ID_TYPES[ids]
        self._failure: BaseException | None = None  # of the last change of the finder

    @property
    @abstractmethod
    def is_inline(self) -> bool:
        """Whether the broker itself matches now."""

    def switch(self, matching: str) -> Shift:
        """Let the other match, from where the files end; the shift that begins."""
        raise BrokerError(f"this service cannot switch to matching by {matching}")

    @abstractmethod
    def stop(self) -> None:
        """End. The next start goes on from where the files end."""

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is matched now, if that is so."""
        return self._failure or self._finder.failure

    @property
    def full(self) -> bool:
        """Whether notifications wait in memory, as the disk is full."""
        return self._finder.full

    @property
    def matched(self) -> int:
        """The notifications of all events before this number are known."""
        return self._tail.matched

    def feed(self, pack: Committed) -> None:
        """Take a pack that is on disk. Called by the sequencer."""
        self._finder.feed(pack)

    def wait(self, sequence: int, seconds: float) -> int:
        """Wait until the event with a number is matched; returns where matching is."""
        return self._tail.wait(sequence, seconds, lambda: self.failure is not None)

    def notifications(self, after: int) -> Iterator[NotificationPairs]:
        """All notifications of events after a number, up to where matching is, as they are read."""
        return self._tail.notifications(after)

    def dry_run(self, event: Mapping[str, Any]) -> list[Id]:
        """The subscriptions that an event would match now."""
        return self._finder.dry_run(event)

    def report(self) -> Report:
        """The calls of operators."""
        return self._finder.report()

    def plan(self, id: Id | None = None) -> Plan:
        """Where the matcher keeps the subscriptions, at what cost, and why.

        With an id, only where the clauses of that subscription are. Raises a `TamisError` if
        there is no plan: none yet, or not in this process.
        """
        return self._finder.plan(id)

    @property
    def left_out(self) -> dict[Id, str]:
        """The live subscriptions that are not matched, each with the reason."""
        return self._finder.left_out
