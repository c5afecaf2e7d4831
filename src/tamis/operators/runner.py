"""Calls operators, and does not let them get in the way of anything else.

An operator is somebody else's code: it may raise, hang, return nonsense or take the process down.
Whatever it does, the caller gets one answer for each event within the operator's timeout, and what
went wrong is counted. The timeout is that of one event, or of one call where the function takes
batches: however often a call is tried again in parts, its time is not begun anew. A batch goes in
as many calls as its events seem to need to be in time, and ends with the first that hangs.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from tamis.errors import OperatorError
from tamis.model.operator import Fault, Rows
from tamis.operators.batch_size import Pace
from tamis.operators.executor import Events, Here, Lane, Place
from tamis.operators.faults import Breaker, Count, Report
from tamis.operators.operator import Operator
from tamis.operators.results import Answers
from tamis.operators.thread_executor import Threads


class Runner:
    """Calls operators where they want to be called, with a limit on time and on faults.

    After `faults` faults in a row, or where half of its last `4 * faults` calls were faults, an
    operator is set aside for `pause` seconds, then one call may try; each pause is twice as long as
    the last one, up to `longest`. Of threads that hang, at most `left` are left to themselves for
    each operator.

    Several threads may call at once. After a fork or a pickle the counts are kept; threads and
    worker processes are not shared, and are started anew when they are needed.
    """

    def __init__(
        self,
        *,
        faults: int = 5,
        pause: float = 30.0,
        longest: float = 600.0,
        left: int = 8,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for word, number in (("faults", faults), ("pause", pause), ("left", left)):
            if not number > 0:
                raise OperatorError(f"{word} of a Runner is above 0, not {number!r}")
        if longest < pause:
            raise OperatorError(f"longest of a Runner is at least its pause, not {longest!r}")
        self._faults, self._pause, self._longest, self._left = faults, pause, longest, left
        self._clock = clock
        self._counts: dict[str, Count] = {}
        self._begin()

    def _begin(self) -> None:
        self._lock = Lock()
        # An operator that is defined anew under its old name starts with a clean slate.
        self._lanes: weakref.WeakKeyDictionary[Operator, Lane] = weakref.WeakKeyDictionary()
        _RUNNERS.add(self)

    def call(self, operator: Operator, reads: Events, arguments: Sequence[Any]) -> Answers:
        """One answer for each event: rows, or the fault that kept the operator from answering.

        `reads` has, for each event, one value for each attribute that the operator reads;
        `arguments` one entry for each parameter of the call, None where it is a variable.
        """
        if operator.pairs:
            return self.call_pairs(operator, reads, [arguments] * len(reads))
        handed = operator.handed(arguments)
        _check_reads(operator, reads)
        lane = self._lane(operator)
        if operator.batch:
            return self._batch(lane, operator, reads, handed)
        return [
            each
            for at in range(len(reads))
            for each in self._asked(lane, operator, reads[at : at + 1], handed)
        ]

    def call_pairs(
        self, operator: Operator, reads: Events, arguments: Sequence[Sequence[Any]]
    ) -> Answers:
        """The same of an operator that takes pairs, with arguments for each event."""
        _check_reads(operator, reads)
        events = [
            (*event, *operator.handed(each).values())
            for event, each in zip(reads, arguments, strict=True)
        ]
        return self._batch(self._lane(operator), operator, events, {})

    def _batch(
        self, lane: Lane, operator: Operator, events: Events, handed: dict[str, Any]
    ) -> Answers:
        """One answer for each event, from as many calls as are likely to be in time.

        Once a call hangs the rest is not tried: a batch is delayed by one timeout, beside the time
        that its answers took.
        """
        if operator.run == "here":  # where nothing is ever late
            return self._asked(lane, operator, events, handed)
        key = tuple(handed.values())  # pairs have no constants in common, and one pace
        found: Answers = []
        while len(found) < len(events):
            part = events[len(found) : len(found) + lane.most(key)]
            given = self._asked(lane, operator, part, handed, key)
            found += given
            if any(isinstance(each, Fault) and each.kind == "timeout" for each in given):
                rest = len(events) - len(found)
                self.skipped(operator, rest, _NOT_TRIED)
                found += [_NOT_TRIED] * rest
        return found

    def _asked(
        self,
        lane: Lane,
        operator: Operator,
        reads: Events,
        handed: dict[str, Any],
        key: Hashable = None,
    ) -> Answers:
        """One answer for each event, from one call or from calls for parts of it, if it raised.

        The parts share one timeout. Events that it does not suffice for are faults: a timeout if a
        part hung, and else what their part raised.
        """
        if not reads:
            return []
        found: dict[int, Rows | Fault] = {}
        left = operator.timeout
        paced = operator.batch and operator.run != "here"
        # Where each part begins and ends, with the fault of its events if there is no time for a
        # call of their own. Large parts come first: most events are well, and are answered before
        # the time is spent on finding the one that is not.
        todo: deque[tuple[int, int, Fault | None]] = deque(((0, len(reads), None),))
        while todo:
            start, end, otherwise = todo.popleft()
            events = reads[start:end]
            if left <= 0 and otherwise is not None:
                entered: int | Fault = otherwise
            else:
                with self._lock:
                    entered = lane.enter(self._clock())
            if isinstance(entered, Fault):
                given: Answers = [entered] * len(events)
                self._count(operator, given)
                found.update(enumerate(given, start))
                continue
            # The first worker process starts on time of its own; one that died of a part of the
            # batch is replaced on the time of the batch.
            failed = lane.start(operator) if paced and otherwise is None else None
            begun = time.perf_counter()
            came = failed or lane.call(operator, events, handed, left)
            seconds = time.perf_counter() - begun
            left -= seconds
            if isinstance(came, list):
                given = came
            elif came.hung:
                # What hangs may do so for any part of the batch: nobody waits twice.
                left = 0.0
                todo = deque((start, end, came.fault) for start, end, _ in todo)
                given = [came.fault] * len(events)
            elif came.divisible and len(events) > 1 and left > 0:
                # One bad event must not take the others of its batch along.
                half = start + len(events) // 2
                todo += [(start, half, came.fault), (half, end, came.fault)]
                given = []
            else:
                given = [came.fault] * len(events)
            self._count(operator, given, 1, seconds)
            if paced:
                with self._lock:
                    lane.learn(key, len(events), came, seconds)
            if given:
                stuck = not isinstance(came, list) and came.stuck
                self._judge(lane, entered, given, at_once=stuck)
                if len(given) == len(reads):
                    return given
                found.update(enumerate(given, start))
        return [found[at] for at in range(len(reads))]

    def skipped(self, operator: Operator, events: int, fault: Fault) -> None:
        """Count events that the caller did not ask about, since the operator would not answer.

        The report is then of all events that wanted an answer. Nothing was tried, so it is nothing
        that the operator could be set aside for.
        """
        if events:
            self._count(operator, [fault] * events)

    def report(self) -> Report:
        """What the faults were, by operator."""
        with self._lock:
            now = self._clock()
            left = {operator.name: lane.left(now) for operator, lane in self._lanes.items()}
            return Report.of(
                replace(count, set_aside_for=left.get(name)) for name, count in self._counts.items()
            )

    def close(self) -> None:
        """End the threads and worker processes that wait; a later call starts new ones."""
        with self._lock:
            lanes = list(self._lanes.values())
        for lane in lanes:
            lane.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            counts = {name: replace(count) for name, count in self._counts.items()}
        kept = {name: value for name, value in vars(self).items() if name not in _HERE_ONLY}
        return {**kept, "_counts": counts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def forked(self) -> None:
        """In a fork of this process: neither threads nor locks are what they were."""
        for lane in list(self._lanes.values()):
            lane.disown()
        self._begin()

    def _lane(self, operator: Operator) -> Lane:
        with self._lock:
            lane = self._lanes.get(operator)
            if lane is None:
                breaker = Breaker(self._faults, self._pause, self._longest)
                pace = Pace(operator.cost / 1000, operator.timeout)
                lane = self._lanes[operator] = Lane(breaker, self._place(operator.run), pace)
            return lane

    def _place(self, run: str) -> Place:
        if run == "here":
            return Here()
        if run == "thread":
            return Threads(self._left)
        # Only those who use it import cloudpickle.
        from tamis.operators.process_executor import Processes

        return Processes()

    def _count(
        self, operator: Operator, given: Answers, calls: int = 0, seconds: float = 0.0
    ) -> None:
        with self._lock:
            count = self._counts.get(operator.name)
            if count is None:
                count = self._counts[operator.name] = Count(operator.name)
            count.calls += calls
            count.seconds += seconds
            count.enter(given)

    def _judge(self, lane: Lane, entered: int, given: Answers, *, at_once: bool) -> None:
        """A call that gave any answer went well; a refusal of the event is one."""
        last = given[-1]
        with self._lock:
            if isinstance(last, Fault) and all(_failed(each) for each in given):
                lane.breaker.failed(entered, last.reason, self._clock(), at_once=at_once)
            else:
                lane.breaker.answered()


def _check_reads(operator: Operator, reads: Events) -> None:
    for event in reads:
        if len(event) != len(operator.read_as):
            raise OperatorError(
                f"operator {operator.name!r} reads {len(operator.read_as)} attributes, "
                f"got {len(event)} values"
            )


def _failed(answer: Rows | Fault) -> bool:
    return isinstance(answer, Fault) and answer.kind != "refused"


_NOT_TRIED = Fault("timeout: not tried, it hung for others of the batch", "timeout")
_HERE_ONLY = ("_lock", "_lanes")  # what neither a pickle nor a fork takes along
_RUNNERS: weakref.WeakSet[Runner] = weakref.WeakSet()


def _forked() -> None:
    for runner in list(_RUNNERS):
        runner.forked()


os.register_at_fork(after_in_child=_forked)
