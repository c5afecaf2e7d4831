"""The sequencer: one thread that gives everything its place in the log.

A group is what arrived during the last commit. It is appended as one pack, synced once, applied to
the state database, and only then answered. Within a pack events come first, then changes, then a
schema. The requests of a group are concurrent, since none was answered: any order of them is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.broker import metrics
from tamis.broker.sequence.answers import AnsweredWith, refuse
from tamis.broker.sequence.appended_rows import apply_arguments, remember_keys
from tamis.broker.sequence.clock import LogClock
from tamis.broker.sequence.dedup import DedupKeys
from tamis.broker.sequence.group import CommitGroup
from tamis.broker.sequence.judge_many import judge_many
from tamis.broker.sequence.requests import (
    Alter,
    Expire,
    Extend,
    Follow,
    Publish,
    PublishedEvent,
    Receipt,
    Request,
    Stop,
    Subscribe,
    SubscribeMany,
)
from tamis.broker.sequence.turns import SoleTurns, Turns
from tamis.broker.state import KnownRequest, State, after_change
from tamis.errors import (
    BrokerError,
    BrokerStoppedError,
    BusyError,
    FullError,
    QuotaError,
    StoreError,
    UnavailableError,
)
from tamis.files.os_errors import is_full
from tamis.model.schema import Schema
from tamis.store import changes as change_tables
from tamis.store.changes import EXPIRE
from tamis.store.log import Appended, Log
from tamis.store.subscription_snapshot import Id

GROUP = 4096  # requests in a group
ROWS = 65_536  # events in a group, about
WAITING = 100_000  # requests that may wait
TICK = 1.0  # seconds between two looks at the leases
_EXPIRED = 10_000  # leases that end in one group


class Committed(NamedTuple):
    """A pack that is on disk, as the next stages take it."""

    numbers: Appended
    events: list[PublishedEvent]
    changes: pa.Table | None  # with sequence numbers
    schema: Schema | None
    moment: int = 0  # when it was appended, in microseconds since 1970

    @property
    def end(self) -> int:
        return self.numbers.schemas.stop


class Sequencer:
    """Appends requests to a log, in groups, and keeps the state database up to date.

    `committed` is called in this thread with each pack that is on disk, in order, and `failed` when
    it ends since it could not write.
    """

    def __init__(
        self,
        log: Log,
        state: State,
        dedup: DedupKeys,
        clock: LogClock,
        committed: Callable[[Committed], None] = lambda pack: None,
        failed: Callable[[], None] = lambda: None,
        turns: Turns | None = None,
    ) -> None:
        self._log, self._state, self._dedup, self._clock = log, state, dedup, clock
        self._turns = turns or SoleTurns()
        self._committed, self._failed = committed, failed
        self.schema = log.schema_at()
        self.failure: BaseException | None = None
        self._queue: SimpleQueue[Request[Any]] = SimpleQueue()
        metrics.COMMIT_QUEUE.set_function(self._queue.qsize)
        self._later: list[Request[Any]] = []  # that must not be in the same group as another
        self._behind: list[tuple[Any, ...]] = []  # that the database could not take
        self._behind_why: BrokerError | None = None
        self.is_behind = False  # the database lacks something that is in the log
        self._under_way: list[Request[Any]] = []  # of the group that is being committed
        self._end = log.end
        self._stopping: Stop | None = None
        self._door = Lock()  # around the queue's end: what is put is taken or refused
        self._closed = False
        self._thread = Thread(target=self._run, name="tamis-sequencer", daemon=True)
        self._thread.start()

    def submit(self, request: Request[Any]) -> Future[Any]:
        """Hand over a request; its answer comes when everything it did is on disk."""
        if self._queue.qsize() >= WAITING:
            raise QuotaError("too many requests are waiting; try again later", after=1.0)
        with self._door:
            if self._closed or self._stopping is not None:
                raise BrokerStoppedError(f"the broker has stopped{_why(self.failure)}")
            self._queue.put(request)
        return request.answer

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._queue.put(Stop())
        self._thread.join()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        ended: Future[None] = Future()
        with AnsweredWith(ended):  # a broker that cannot write must not go on
            self._serve()
            ended.set_result(None)
        with self._door:
            self.failure, self._closed = ended.exception(), True
            self._refuse_waiting()
        if self.failure is not None:
            self._failed()

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
        rows, taken = 0, 0
        try:
            if not requests:
                self._take(self._queue.get(timeout=patience), requests)
            # What waits from before does not count: it must not keep the queue waiting.
            while taken < GROUP and rows < ROWS:
                rows += self._take(self._queue.get_nowait(), requests)
                taken += 1
        except Empty:
            pass
        return requests

    def _take(self, request: Request[Any], requests: list[Request[Any]]) -> int:
        """Take a request, unless its caller has cancelled it; how many rows it has."""
        if not request.answer.set_running_or_notify_cancel():
            return 0
        requests.append(request)
        if isinstance(request, SubscribeMany):
            return int(request.table.num_rows)
        return len(request.events) if isinstance(request, Publish) else 1

    def _refuse_waiting(self) -> None:
        why = f"the broker has stopped{_why(self.failure)}"
        shown = "whether this request is in the log shows when it starts again"
        refuse((each.answer for each in self._under_way), BrokerStoppedError(f"{why}; {shown}"))
        waiting, self._later = self._later, []
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        refuse((each.answer for each in waiting), BrokerStoppedError(why))

    def _commit(self, requests: list[Request[Any]]) -> None:
        self._under_way = requests
        try:
            if all(isinstance(each, Follow) for each in requests):
                self._turns.follow()
                self._take_in()
                for request in requests:
                    request.answer.set_result(None)
            else:
                with self._turns.turn():
                    self._take_in()
                    self._commit_group(requests)
        except UnavailableError as why:
            stops = (each for each in requests if isinstance(each, Stop))
            self._stopping = self._stopping or next(stops, None)
            self._later = []
            refuse((each.answer for each in requests), why)
        self._under_way = []

    def _take_in(self) -> None:
        """Take in what other services have appended to the log."""
        start, end = self._end, self._log.end
        if start < end:
            self._behind.append(apply_arguments(self._log, start, end))
            self._catch_up()
            self._clock.raise_to(remember_keys(self._log, self._dedup, start, end))
            self.schema, self._end = self._log.schema_at(), end
            self._committed(Committed(Appended(*[range(end, end)] * 3), [], None, None))

    def _commit_group(self, requests: list[Request[Any]]) -> None:
        group = CommitGroup(self._log.ids)
        self._catch_up()
        for request in requests:
            with AnsweredWith(request.answer):  # a refusal: the group is as it was
                self._judge(request, group)
        if group.events or group.rows or group.tables or group.schema is not None:
            moment = self._clock.now()
            try:
                pack = self._append(group, moment)
            except FullError as refusal:
                refuse((each.answer for each in group.requests), refusal)
            else:
                self._after(group, pack, moment)
        else:
            numbers = Appended(range(0), range(0), range(0))
            for answer in group.answers:
                answer(numbers)

    def _append(self, group: CommitGroup, moment: int) -> Appended:
        try:
            numbers = group.append_to(self._log, moment)
        except StoreError as why:
            if not is_full(why) or self._log.settle() != self._end:  # something of it stayed
                raise
            raise FullError(str(why)) from why
        self._end = numbers.schemas.stop
        return numbers

    def _after(self, group: CommitGroup, numbers: Appended, moment: int) -> None:
        """Everything that follows from a pack on disk."""
        changes = None
        rows = group.change_table()
        if rows is not None:
            changes = change_tables.numbered(rows, numbers.changes.start)
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
        self._committed(Committed(numbers, group.events, changes, group.schema, moment))

    def _catch_up(self) -> None:
        """Apply to the database what it could not take before."""
        while self._behind:
            try:
                self._state.apply(*self._behind[0])
            except (FullError, BusyError) as why:
                self._behind_why, self.is_behind = why, True
                return  # what is in the log is not lost; changes are refused meanwhile
            self._behind.pop(0)
        self.is_behind = False

    # -- judging ---------------------------------------------------------------------------------

    def _judge(self, request: Request[Any], group: CommitGroup) -> None:
        """Add a request to a group, answer it at once, leave it for the next group, or raise."""
        if isinstance(request, Publish):
            self._judge_publish(request, group)
        elif isinstance(request, Stop):
            self._stopping = request
        elif isinstance(request, Follow):
            request.answer.set_result(None)
        elif self._behind and self._behind_why is not None:
            raise self._behind_why
        elif isinstance(request, Subscribe):
            self._judge_subscribe(request, group)
        elif isinstance(request, SubscribeMany):
            judge_many(request, group, self._state, self.schema, self._later)
        elif isinstance(request, Alter):
            self._judge_alter(request, group)
        elif isinstance(request, Extend):
            self._judge_extend(request, group)
        elif isinstance(request, Expire):
            self._judge_expire(request, group)

    def _judge_publish(self, request: Publish, group: CommitGroup) -> None:
        if request.schema is not self.schema:
            request.events = request.again(self.schema)
            request.schema = self.schema
        moment = self._clock.now()
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
        group.add_events(fresh)
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

    def _judge_subscribe(self, request: Subscribe, group: CommitGroup) -> None:
        row = request.row
        owner, key, id = row.get("owner"), row.get("request_key"), row.get("id")
        if key is not None:
            known = self._state.request(row)
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
        if id is not None and self._state.taken_among({id: owner}):
            raise BrokerError(f"the id {id!r} is taken")
        if request.schema is not self.schema:
            request.again(self.schema)
        if request.most is not None:
            live = self._state.count_of(owner) + group.subscribed.get(owner, 0)
            if live >= request.most:
                who = owner or "anonymous callers"
                raise QuotaError(f"{who}: {live:,} live subscriptions, as many as are allowed")
        place = len(group.rows)
        group.add_rows([row])
        group.touched |= names
        group.subscribed[owner] = group.subscribed.get(owner, 0) + 1

        def answer(numbers: Appended) -> None:
            given: Id = numbers.changes.start + place if id is None else id
            request.answer.set_result(
                KnownRequest(given, row["nonce"], row["key_generation"], row["until"])
            )

        group.answers.append(answer)
        group.requests.append(request)

    def _judge_alter(self, request: Alter, group: CommitGroup) -> None:
        if ("id", request.id) in group.touched:
            self._later.append(request)
            return
        live = self._state.subscription(request.id)
        row = request.judge(live, self.schema)
        if row is None:
            request.answer.set_result(live)
            return
        place, change = len(group.rows), row
        group.add_rows([row])
        group.touched.add(("id", request.id))
        # Not asked of the database, which may be behind.
        group.answers.append(
            lambda numbers: request.answer.set_result(
                after_change(live, change, numbers.changes.start + place)
            )
        )
        group.requests.append(request)

    def _judge_extend(self, request: Extend, group: CommitGroup) -> None:
        if group.schema is not None:
            self._later.append(request)
            return
        schema = request.build(self.schema)
        schema.check_extends(self.schema)
        if schema.text == self.schema.text:  # it holds already
            request.answer.set_result(self._end)
            return
        group.schema = schema
        group.answers.append(lambda numbers: request.answer.set_result(numbers.schemas.start))
        group.requests.append(request)

    def _judge_expire(self, request: Expire, group: CommitGroup) -> None:
        due = self._state.due(self._clock.now(), _EXPIRED)
        due = [id for id in due if ("id", id) not in group.touched]
        group.add_rows([{"kind": EXPIRE, "id": id} for id in due])
        group.touched.update(("id", id) for id in due)
        group.answers.append(lambda numbers: request.answer.set_result(len(due)))
        group.requests.append(request)


def _why(failure: BaseException | None) -> str:
    return "" if failure is None else f": {failure}"
