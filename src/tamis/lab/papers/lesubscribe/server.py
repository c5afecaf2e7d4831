"""A matcher in a process of its own: a client sends sets of events and gets the matches back.

In section 4 of Le Subscribe, a Java program sends sets of events to a K program, which returns a
list of matched subscriptions for each event. Here both are Python. Events travel as Arrow tables of
raw values, and the server encodes them; matches travel as arrays of numbers. Both processes read
the same monotonic clock, so the client knows when the server had finished.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tamis import workload
from tamis.encode.arrow import events_from_table
from tamis.encode.encoder import Encoder
from tamis.errors import MatcherError, TamisError
from tamis.files.arrays import Int64s
from tamis.lab.instruments.clauses import clauses
from tamis.lab.instruments.matcher_runs import count_work, finish_plan
from tamis.lab.papers.lesubscribe.cluster_shares import cluster_share
from tamis.match import registry
from tamis.match.base import Matcher, Matches
from tamis.model.schema import Schema

_COUNTED = 40  # events whose operations are counted
_SECONDS = 2.0  # at most for counting
_ENDED = (
    "the process of a matcher has ended; its error is above, or the system ended it for want of "
    "memory"
)
_PLANNED = 500  # events that an adaptive matcher sees before it is measured


@dataclass(frozen=True)
class ServedWorkload:
    """What a server loads: a workload of Le Subscribe, or the share of one of several servers."""

    n: int
    seed: int
    parameters: Mapping[str, Any]
    part: int = 0
    parts: int = 1

    def events(self, number: int, events: int) -> pa.Table:
        """The set of events with this number."""
        return self._make(1).events(events, seed=number)

    def make(self) -> workload.Workload:
        """The workload with all its subscriptions."""
        return self._make(self.n)

    def _make(self, n: int) -> workload.Workload:
        return workload.make("lesubscribe", n, seed=self.seed, **self.parameters)


class Loaded(NamedTuple):
    """What a server says about the matcher that it has loaded."""

    seconds: float
    memory_mb: float
    counts: dict[str, float]  # operations an event


class Served(NamedTuple):
    """The answer of a server. Ids are rows of the workload, also if the server has a share."""

    finished: float  # when it had matched, on the clock of `time.monotonic`
    matches: Matches


class MatchingServer:
    """A server that runs until the block ends."""

    def __init__(self, served: ServedWorkload) -> None:
        # A fresh interpreter: a fork would share the threads and locks of Arrow and Numba.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, served), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pipe.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def load(self, matcher: str, options: Mapping[str, Any]) -> Loaded:
        """Replace the matcher of the server. Raises a `MatcherError` if it refuses."""
        self._send((matcher, dict(options)))
        found = self._receive()
        if isinstance(found, str):
            raise MatcherError(found)
        assert isinstance(found, Loaded)
        return found

    def ask(self, events: pa.Table) -> None:
        """Send a set of events."""
        self._send(events)

    def answer(self) -> Served:
        """Wait for the matches of the set that was sent."""
        finished, starts, rows = self._receive()
        return Served(finished, Matches(starts, rows))

    def _send(self, what: object) -> None:
        try:
            self._pipe.send(what)
        except OSError:
            raise TamisError(_ENDED) from None

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            raise TamisError(_ENDED) from None


def serve(pipe: Connection, served: ServedWorkload) -> None:
    """The server: load a matcher for each name, match each table, until the pipe closes."""
    subscriptions = _ServedSubscriptions(served)
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        if isinstance(asked, pa.Table):
            matches = subscriptions.match(asked)
            finished = time.monotonic()
            pipe.send((finished, matches.starts, subscriptions.rows[matches.slots]))
        else:
            try:
                pipe.send(subscriptions.load(*asked))
            except MatcherError as why:
                pipe.send(str(why))
            except MemoryError:
                pipe.send("there is not enough memory")


class _ServedSubscriptions:
    """The subscriptions of a server, and the matcher that has them."""

    def __init__(self, served: ServedWorkload) -> None:
        made = served.make()
        self._encoder = Encoder(Schema.from_dict(made.schema))
        terms, _ = clauses(self._encoder, made.subscriptions)
        share = np.arange(terms.clauses)
        if served.parts > 1:
            share = cluster_share(terms, served.part, served.parts)
            terms = terms.take(share)
        self.rows = share.astype(np.int32)  # by slot: ids travel as narrow as they may
        self._terms = terms
        self._slots: Int64s = np.arange(terms.clauses)
        self._sample = events_from_table(self._encoder, served.events(0, _PLANNED))
        self._matcher: Matcher | None = None

    def load(self, name: str, options: Mapping[str, Any]) -> Loaded:
        self._matcher = None  # before the next one takes memory
        matcher = registry.create(name, **options)
        began = time.perf_counter()
        matcher.add(self._slots, self._terms)
        matcher.match(self._sample[:1])
        seconds = time.perf_counter() - began
        finish_plan(matcher, self._sample)
        counts, _ = count_work(matcher, self._sample[:_COUNTED], _SECONDS)
        self._matcher = matcher
        return Loaded(seconds, matcher.nbytes / 1e6, counts)

    def match(self, events: pa.Table) -> Matches:
        assert self._matcher is not None, "a matcher is loaded first"
        return self._matcher.match(events_from_table(self._encoder, events))
