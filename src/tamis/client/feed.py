"""Notifications as they come, over connections that come and go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from tamis.client import plans
from tamis.client.answers import Id, NotificationPage, ReceivedNotification
from tamis.client.call import ServiceCall
from tamis.client.retries import Pause, Retries, may_pass
from tamis.client.service_error import ServiceError, UnreachableError, read_problem

SILENCE = 45.0  # seconds; the service says something every 15
_NOTIFICATION = "notification"
_read = plans.reader(ReceivedNotification)


class Feed:
    """Where a reader is. It asks for what comes after, and drops what a reconnect repeats.

    The service sends a cursor with the last notification of each event. After a lost connection, it
    sends the notifications of an event again whose last one did not come through.
    """

    def __init__(
        self,
        subscription: Id | None,
        ticket: str | None,
        after: int | None,
        body: str | None,
        policy: Retries,
        patience: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._subscription, self._ticket, self._body = subscription, ticket, body
        self.cursor = after
        self._policy, self._patience, self._clock = policy, patience, clock
        self._above: set[tuple[int, Id]] = set()  # given, after the cursor
        self._failures = 0
        self._alive = clock()

    def opening(self) -> ServiceCall[NotificationPage] | None:
        """What to ask first: where the end is, if the reader did not say where to begin."""
        if self.cursor is not None:
            return None
        return plans.poll(self._subscription, ticket=self._ticket, most=1)

    def opened(self, page: NotificationPage) -> None:
        """The answer to `opening`. Nothing can have come before the end."""
        self.cursor = page.cursor

    def connect(self) -> ServiceCall[None]:
        """The request of a stream from the cursor on."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._ticket is not None:
            headers["Tamis-Ticket"] = self._ticket
        path = plans.notifications_path(self._subscription)
        params = {"after": str(self.cursor)}
        params |= {} if self._body is None else {"body": self._body}
        return ServiceCall("GET", path, lambda content: None, params, headers)

    def connected(self) -> None:
        """A stream began."""
        self._failures, self._alive = 0, self._clock()

    def received(self, kind: str, id: str, data: str) -> ReceivedNotification | None:
        """A notification of the stream; None for other messages, and if it was given before."""
        self._alive = self._clock()
        if kind != _NOTIFICATION:
            return None
        found = _read(data.encode())
        cursor = int(id) if id.isdecimal() else -1
        assert self.cursor is not None
        repeated = (found.sequence, found.subscription) in self._above
        if cursor > self.cursor:
            self.cursor = cursor
            self._above = {each for each in self._above if each[0] > cursor}
        if found.sequence > self.cursor:
            self._above.add((found.sequence, found.subscription))
        if repeated:
            return None
        return msgspec.structs.replace(found, cursor=self.cursor)

    def refused(self, status: int, headers: Mapping[str, str], content: bytes) -> Pause:
        """The service refused the stream: for a while, or for good."""
        problem = read_problem(status, headers, content)
        if may_pass(problem):
            return self._again(problem, problem.after)
        raise problem

    def lost(self, why: Exception | None) -> Pause:
        """The stream ended."""
        what = "it ended the stream" if why is None else str(why) or type(why).__name__
        return self._again(UnreachableError(f"the service is gone: {what}", sent=True), None)

    def _again(self, error: ServiceError | UnreachableError, asked: float | None) -> Pause:
        self._failures += 1
        if self._patience is not None and self._clock() - self._alive > self._patience:
            raise error
        return self._policy.pause(self._failures, asked) or Pause(self._policy.longest)
