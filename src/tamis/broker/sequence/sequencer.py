"""The sequencer: one thread that gives everything its place in the log.

A group is what arrived during the last commit. It is appended as one pack, synced once, applied to
the state database, and only then answered. Within a pack events come first, then changes, then a
schema. The requests of a group are concurrent, since none was answered: any order of them is right.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.broker.sequence.answers import AnsweredWith
from tamis.broker.sequence.dedup import DedupKeys
from tamis.broker.sequence.requests import (
    Alter,
    Expire,
    Extend,
    Publish,
    PublishedEvent,
    Receipt,
    Request,
    Row,
    Stop,
    Subscribe,
)
from tamis.broker.state import KnownRequest, State
from tamis.errors import BrokerError, BrokerStoppedError, FullError, QuotaError, StoreError
from tamis.model.schema import Schema
from tamis.store import changes as change_tables
from tamis.store.changes import EXPIRE
from tamis.store.log import Appended, Log
from tamis.store.published import JSON, RESERVED
from tamis.store.subscription_snapshot import Id

GROUP = 4096  # requests in a group
ROWS = 65_536  # events in a group, about
WAITING = 100_000  # requests that may wait
TICK = 1.0  # seconds between two looks at the leases
_EXPIRED = 10_000  # leases that end in one group
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Committed(NamedTuple):
    """A pack that is on disk, as the next stages take it."""

    numbers: Appended
    events: list[PublishedEvent]
    changes: pa.Table | None  # with sequence numbers
    schema: Schema | None

    @property
    def end(self) -> int:
        return self.numbers.schemas.stop


class _Group:
    """The requests of one commit, and what they add to the log."""

    def __init__(self) -> None:
        self.events: list[PublishedEvent] = []
        self.rows: list[Row] = []
        self.schema: Schema | None = None
        self.touched: set[Any] = set()  # ids and request keys: each at most once in a group
        self.subscribed: dict[str | None, int] = {}  # by owner
        # Called with the pack, once it is on disk:
        self.answers: list[Callable[[Appended], None]] = []
        self.requests: list[Request[Any]] = []


class Sequencer:
    """Appends requests to a log, in groups, and keeps the state database up to date.

    `committed` is called in this thread with each pack that is on disk, in order.
    """

    def __init__(
        self,
        log: Log,
        state: State,
        dedup: DedupKeys,
        clock: Callable[[], int],
        committed: Callable[[Committed], None] = lambda pack: None,
    ) -> None:
        self._log, self._state, self._dedup, self._clock = log, state, dedup, clock
        self._committed = committed
        self.schema = log.schema_at()
        self.failure: BaseException | None = None
        self._queue: SimpleQueue[Request[Any]] = SimpleQueue()
        self._later: list[Request[Any]] = []  # that must not be in the same group as another
        self._behind: list[tuple[pa.Table, int, int]] = []  # that the database could not take
        self._under_way: list[Request[Any]] = []  # of the group that is being committed
        self._stopping: Stop | None = None
        self._thread = Thread(target=self._run, name="tamis-sequencer", daemon=True)
        self._thread.start()

    def submit(self, request: Request[Any]) -> Future[Any]:
        """Hand over a request; its answer comes when everything it did is on disk."""
        if self.failure is not None or self._stopping is not None:
            raise BrokerStoppedError(f"the broker has stopped{_why(self.failure)}")
        if self._queue.qsize() >= WAITING:
            raise QuotaError("too many requests are waiting; try again later", after=1.0)
        self._queue.put(request)
        if not self._thread.is_alive():  # it ended meanwhile, and may not have seen this request
            self._refuse_waiting()
        return request.answer

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        if self._thread.is_alive():
            self._queue.put(Stop())
            self._thread.join()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        ended: Future[None] = Future()
        with AnsweredWith(ended):  # a broker that cannot write must not go on
            self._serve()
            ended.set_result(None)
        self.failure = ended.exception()
        self._refuse_waiting()

    def _serve(self) -> None:
        look = time.monotonic() + TICK
        while self._stopping is None or self._later or not self._queue.empty():
            requests = self._gather(max(0.0, look - time.monotonic()))
            if time.monotonic() >= look:
                requests.insert(0, Expire())
                look = time.monotonic() + TICK
            if requests:
                self._commit(requests)

    def _gather(self, patience: float) -> list[Request[Any]]:
        """All that waits, or else the first that comes."""
        requests, self._later = self._later, []
        rows = 0
        try:
            if not requests:
                requests.append(self._queue.get(timeout=patience))
            while len(requests) < GROUP and rows < ROWS:
                requests.append(self._queue.get_nowait())
                last = requests[-1]
                rows += len(last.events) if isinstance(last, Publish) else 1
        except Empty:
            pass
        return requests

    def _refuse_waiting(self) -> None:
        for request in self._under_way:
            if not request.answer.done():
                request.answer.set_exception(
                    BrokerStoppedError(
                        f"the broker has stopped{_why(self.failure)}; whether this request is in "
                        "the log shows when it starts again"
                    )
                )
        waiting, self._later = self._later, []
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        for request in waiting:
            if not request.answer.done():
                request.answer.set_exception(
                    BrokerStoppedError(f"the broker has stopped{_why(self.failure)}")
                )

    def _commit(self, requests: Iterable[Request[Any]]) -> None:
        group = _Group()
        self._catch_up()
        for request in requests:
            with AnsweredWith(request.answer):  # a refusal: the group is as it was
                self._judge(request, group)
        if group.events or group.rows or group.schema is not None:
            moment = self._clock()
            self._under_way = group.requests
            try:
                pack = self._append(group, moment)
            except FullError as refusal:
                for request in group.requests:
                    request.answer.set_exception(refusal)
            else:
                self._after(group, pack, moment)
            self._under_way = []
        else:
            numbers = Appended(range(0), range(0), range(0))
            for answer in group.answers:
                answer(numbers)

    def _append(self, group: _Group, moment: int) -> Appended:
        events = _event_table(group.events) if group.events else None
        changes = self._rows(group) if group.rows else None
        try:
            return self._log.append(
                events=events, changes=changes, schema=group.schema, moment=moment
            )
        except StoreError as why:
            if isinstance(why.__cause__, OSError) and why.__cause__.errno in _FULL:
                raise FullError(str(why)) from why
            raise

    def _rows(self, group: _Group) -> pa.Table:
        wanted = change_tables.change_schema(self._log.ids, change_tables.ALL)
        return pa.Table.from_pylist(group.rows, wanted)

    def _after(self, group: _Group, numbers: Appended, moment: int) -> None:
        """Everything that follows from a pack on disk."""
        changes = None
        if group.rows:
            changes = change_tables.numbered(self._rows(group), numbers.changes.start)
            sequence = pa.array(numbers.changes, pa.int64())
            changes = changes.add_column(0, "sequence", sequence)
            self._behind.append((changes, numbers.schemas.stop, moment))
            self._catch_up()
        if group.schema is not None:
            self.schema = group.schema
        keys = [
            (event.key, number)
            for event, number in zip(group.events, numbers.events, strict=True)
            if event.key is not None
        ]
        self._dedup.remember(keys, moment)
        for answer in group.answers:
            answer(numbers)
        self._committed(Committed(numbers, group.events, changes, group.schema))

    def _catch_up(self) -> None:
        """Apply to the database what it could not take before."""
        while self._behind:
            try:
                self._state.apply(*self._behind[0])
            except FullError:
                return  # what is in the log is not lost; changes are refused meanwhile
            self._behind.pop(0)

    # -- judging ---------------------------------------------------------------------------------

    def _judge(self, request: Request[Any], group: _Group) -> None:
        """Add a request to a group, answer it at once, leave it for the next group, or raise."""
        if isinstance(request, Publish):
            self._judge_publish(request, group)
        elif isinstance(request, Stop):
            self._stopping = request
        elif self._behind:
            raise FullError(f"{self._state.path}: the disk is full; make room")
        elif isinstance(request, Subscribe):
            self._judge_subscribe(request, group)
        elif isinstance(request, Alter):
            self._judge_alter(request, group)
        elif isinstance(request, Extend):
            self._judge_extend(request, group)
        elif isinstance(request, Expire):
            self._judge_expire(request, group)

    def _judge_publish(self, request: Publish, group: _Group) -> None:
        if request.schema is not self.schema:
            request.again(self.schema)
            request.schema = self.schema
        moment = self._clock()
        known: list[int | None] = []
        seen: dict[bytes, int] = {}  # keys of this request: their places in the group
        places: list[int] = []
        fresh: list[PublishedEvent] = []
        for event in request.events:
            number = None if event.key is None else self._dedup.find(event.key, moment)
            if number is None and event.key is not None:
                if event.key in group.touched and event.key not in seen:
                    self._later.append(request)  # its twin is in this group
                    return
                place = seen.setdefault(event.key, len(group.events) + len(fresh))
                if place < len(group.events) + len(fresh):
                    known.append(None)
                    places.append(place)
                    continue
            known.append(number)
            places.append(len(group.events) + len(fresh))
            if number is None:
                fresh.append(event)
        group.events += fresh
        group.touched.update(seen)
        duplicates = len(request.events) - len(fresh)

        def answer(numbers: Appended) -> None:
            first = numbers.events.start
            found = [
                first + place if number is None else number
                for number, place in zip(known, places, strict=True)
            ]
            request.answer.set_result(Receipt(found, duplicates))

        group.answers.append(answer)
        group.requests.append(request)

    def _judge_subscribe(self, request: Subscribe, group: _Group) -> None:
        row = request.row
        owner, key, id = row.get("owner"), row.get("request_key"), row.get("id")
        if key is not None:
            known = self._state.request(owner, key)
            if known is not None:
                request.answer.set_result(known)
                return
        names: set[Any] = set()
        if key is not None:
            names.add(("request", owner, key))
        if id is not None:
            names.add(("id", id))
        if names & group.touched:
            self._later.append(request)
            return
        if id is not None and self._state.subscription(id) is not None:
            raise BrokerError(f"the id {id!r} is taken")
        if request.schema is not self.schema:
            request.again(self.schema)
        if request.most is not None:
            live = self._state.count(owner) + group.subscribed.get(owner, 0)
            if live >= request.most:
                raise QuotaError(f"{owner} has {live} subscriptions, as many as are allowed")
        place = len(group.rows)
        group.rows.append(row)
        group.touched |= names
        group.subscribed[owner] = group.subscribed.get(owner, 0) + 1

        def answer(numbers: Appended) -> None:
            given: Id = numbers.changes.start + place if id is None else id
            request.answer.set_result(
                KnownRequest(given, row["nonce"], row["key_generation"], row["until"])
            )

        group.answers.append(answer)
        group.requests.append(request)

    def _judge_alter(self, request: Alter, group: _Group) -> None:
        if ("id", request.id) in group.touched:
            self._later.append(request)
            return
        row = request.judge(self._state.subscription(request.id), self.schema)
        if row is None:
            request.answer.set_result(self._state.subscription(request.id))
            return
        group.rows.append(row)
        group.touched.add(("id", request.id))
        group.answers.append(
            lambda numbers: request.answer.set_result(self._state.subscription(request.id))
        )
        group.requests.append(request)

    def _judge_extend(self, request: Extend, group: _Group) -> None:
        if group.schema is not None:
            self._later.append(request)
            return
        schema = request.build(self.schema)
        schema.check_extends(self.schema)
        group.schema = schema
        group.answers.append(lambda numbers: request.answer.set_result(numbers.schemas.start))
        group.requests.append(request)

    def _judge_expire(self, request: Expire, group: _Group) -> None:
        due = self._state.due(self._clock(), _EXPIRED)
        due = [id for id in due if ("id", id) not in group.touched]
        group.rows += [{"kind": EXPIRE, "id": id} for id in due]
        group.touched.update(("id", id) for id in due)
        group.answers.append(lambda numbers: request.answer.set_result(len(due)))
        group.requests.append(request)


def _event_table(events: list[PublishedEvent]) -> pa.Table:
    columns: dict[str, Any] = {JSON: pa.array([event.text for event in events], pa.string())}
    given: dict[str, list[Any]] = {
        "$source": [event.source for event in events],
        "$id": [event.id for event in events],
        "$time": [event.time for event in events],
        "$envelope": [event.envelope for event in events],
    }
    for name, values in given.items():
        if any(value is not None for value in values):
            columns[name] = pa.array(values, RESERVED[name])
    return pa.table(columns)


def _why(failure: BaseException | None) -> str:
    return "" if failure is None else f": {failure}"
