"""A deliverer that works while this service is the one that delivers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol

from tamis.errors import TamisError

_LOOK = 0.5  # seconds between two looks at who delivers


class Delivering(Protocol):
    """What delivers, until it is stopped."""

    @property
    def delivered(self) -> int:
        """How many messages were delivered."""

    @property
    def failed(self) -> int:
        """How many attempts failed."""

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is delivered now, if that is so."""

    def wake(self) -> None:
        """There is something to deliver."""

    def stop(self) -> None:
        """End soon."""


class LedDeliverer:
    """Starts a deliverer when this service is elected, and stops it when another one is."""

    def __init__(
        self,
        make: Callable[[], Delivering],
        leads: Callable[[], bool],
        otherwise: Callable[[], None] = lambda: None,
    ) -> None:
        """`otherwise` is called now and then while another service is elected."""
        self._make, self._leads, self._otherwise = make, leads, otherwise
        self._working: Delivering | None = None
        self._before = (0, 0)  # what earlier deliverers have delivered, and failed to
        self.failure: BaseException | None = None
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="tamis-delivery", daemon=True)
        self._thread.start()

    @property
    def delivered(self) -> int:
        """How many messages this service has delivered."""
        working = self._working
        return self._before[0] + (0 if working is None else working.delivered)

    @property
    def failed(self) -> int:
        """How many attempts of this service have failed."""
        working = self._working
        return self._before[1] + (0 if working is None else working.failed)

    def wake(self) -> None:
        """There is something to deliver."""
        working = self._working
        if working is not None:
            working.wake()

    def stop(self) -> None:
        """End soon; another service goes on."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK):
            try:
                self._look()
            except TamisError as why:  # the database may be away; it is tried again
                self.failure = why
        self._end()

    def _look(self) -> None:
        if not self._leads():
            self._end()
            self._otherwise()
        elif self._working is None:
            self._working = self._make()
        working = self._working
        self.failure = None if working is None else working.failure

    def _end(self) -> None:
        working = self._working
        if working is not None:
            working.stop()
            self._before, self._working = (self.delivered, self.failed), None
