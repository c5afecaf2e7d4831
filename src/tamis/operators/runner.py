"""Calls operators, and contains their failures.

An operator is foreign code: it may raise, hang, return nonsense or crash its process. Whatever it
does, the caller gets one answer for each event within the timeout, and faults are counted. The
timeout is for one event, or for one call where the function takes batches. A call that is repeated
in parts gets no additional time. A batch is split into as many calls as its events need to meet the
timeout, and ends with the first call that hangs.
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
from tamis.operators.batch_size import BatchSizer
from tamis.operators.breaker import CircuitBreaker
from tamis.operators.caller import OperatorCaller
from tamis.operators.executor import Events, Executor
from tamis.operators.operator import Operator
from tamis.operators.report import CallCounts, Report
from tamis.operators.results import Answers
from tamis.operators.thread_executor import ThreadExecutor


class Runner:
    """Calls operators inline, in threads or in processes, with limits on time and on faults.

    An operator is set aside for `pause` seconds after `faults` faults in a row, or when half of its
    last `4 * faults` calls were faults; then one call may try. Each pause is twice as long as the
    last one, up to `longest`. Each operator may have `left` abandoned calls in threads.

    A runner is thread-safe. A fork or a pickle keeps the counts, but neither threads nor worker
    processes; new ones are started on demand.
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
        self._counts: dict[str, CallCounts] = {}
        self._begin()

    def _begin(self) -> None:
        self._lock = Lock()
        # An operator that is defined again under its old name starts without a history.
        self._callers: weakref.WeakKeyDictionary[Operator, OperatorCaller] = (
            weakref.WeakKeyDictionary()
        )
        _RUNNERS.add(self)

    def call(self, operator: Operator, reads: Events, arguments: Sequence[Any]) -> Answers:
        """One answer for each event: rows, or a fault.

        `reads` has, for each event, one value for each attribute that the operator reads;
        `arguments` has one entry for each parameter of the call, None for a variable.
        """
        if operator.pairs:
            return self.call_pairs(operator, reads, [arguments] * len(reads))
        handed = operator.handed(arguments)
        _check_reads(operator, reads)
        caller = self._caller(operator)
        if operator.batch:
            return self._call_batch(caller, operator, reads, handed)
        return [
            each
            for at in range(len(reads))
            for each in self._call(caller, operator, reads[at : at + 1], handed)
        ]

    def call_pairs(
        self, operator: Operator, reads: Events, arguments: Sequence[Sequence[Any]]
    ) -> Answers:
        """Like `call` for an operator that takes pairs, with arguments for each event."""
        _check_reads(operator, reads)
        events = [
            (*event, *operator.handed(each).values())
            for event, each in zip(reads, arguments, strict=True)
        ]
        return self._call_batch(self._caller(operator), operator, events, {})

    def _call_batch(
        self, caller: OperatorCaller, operator: Operator, events: Events, handed: dict[str, Any]
    ) -> Answers:
        """One answer for each event, from as many calls as are likely to meet the timeout.

        After a call that hangs, the rest is not tried: a batch loses one timeout at most.
        """
        if operator.run == "here":  # without a timeout
            return self._call(caller, operator, events, handed)
        key = tuple(handed.values())  # pairs share no constants: they have one key
        found: Answers = []
        while len(found) < len(events):
            part = events[len(found) : len(found) + caller.batch_size(key)]
            given = self._call(caller, operator, part, handed, key)
            found += given
            if any(isinstance(each, Fault) and each.kind == "timeout" for each in given):
                rest = len(events) - len(found)
                self.skipped(operator, rest, _NOT_TRIED)
                found += [_NOT_TRIED] * rest
        return found

    def _call(
        self,
        caller: OperatorCaller,
        operator: Operator,
        reads: Events,
        handed: dict[str, Any],
        key: Hashable = None,
    ) -> Answers:
        """One answer for each event, from one call; if it raised, from calls for its parts.

        The parts share one timeout. When it is used up, the remaining events are faults: a timeout
        if a part hung, else the exception of their part.
        """
        if not reads:
            return []
        found: dict[int, Rows | Fault] = {}
        left = operator.timeout
        sized = operator.batch and operator.run != "here"
        # The start and end of each part, and its fault if no time is left for a call. Large parts
        # come first: most events are good, and get their answers before the time is spent on the
        # search for the bad one.
        todo: deque[tuple[int, int, Fault | None]] = deque(((0, len(reads), None),))
        while todo:
            start, end, otherwise = todo.popleft()
            events = reads[start:end]
            if left <= 0 and otherwise is not None:
                entered: int | Fault = otherwise
            else:
                with self._lock:
                    entered = caller.enter(self._clock())
            if isinstance(entered, Fault):
                given: Answers = [entered] * len(events)
                self._count(operator, given)
                found.update(enumerate(given, start))
                continue
            # The first worker process has its own time to start; a replacement for one that died of
            # a part of the batch starts within the timeout of the batch.
            failed = caller.start(operator) if sized and otherwise is None else None
            begun = time.perf_counter()
            came = failed or caller.call(operator, events, handed, left)
            seconds = time.perf_counter() - begun
            left -= seconds
            if isinstance(came, list):
                given = came
            elif came.hung:
                # Any part of the batch may hang: nobody waits twice.
                left = 0.0
                todo = deque((start, end, came.fault) for start, end, _ in todo)
                given = [came.fault] * len(events)
            elif came.divisible and len(events) > 1 and left > 0:
                # One bad event must not spoil the others of its batch.
                half = start + len(events) // 2
                todo += [(start, half, came.fault), (half, end, came.fault)]
                given = []
            else:
                given = [came.fault] * len(events)
            self._count(operator, given, 1, seconds)
            if sized:
                with self._lock:
                    caller.learn(key, len(events), came, seconds)
            if given:
                stuck = not isinstance(came, list) and came.stuck
                self._report_outcome(caller, entered, given, at_once=stuck)
                if len(given) == len(reads):
                    return given
                found.update(enumerate(given, start))
        return [found[at] for at in range(len(reads))]

    def skipped(self, operator: Operator, events: int, fault: Fault) -> None:
        """Count events for which the caller made no call, since the operator would not answer.

        So the report covers all events that needed an answer. These faults do not count for the
        circuit breaker.
        """
        if events:
            self._count(operator, [fault] * events)

    def report(self) -> Report:
        """The counts of calls and faults, by operator."""
        with self._lock:
            now = self._clock()
            left = {
                operator.name: caller.pause_left(now) for operator, caller in self._callers.items()
            }
            return Report.of(
                replace(count, set_aside_for=left.get(name)) for name, count in self._counts.items()
            )

    def close(self) -> None:
        """End idle threads and worker processes; a later call starts new ones."""
        with self._lock:
            callers = list(self._callers.values())
        for caller in callers:
            caller.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            counts = {name: replace(count) for name, count in self._counts.items()}
        kept = {name: value for name, value in vars(self).items() if name not in _PROCESS_ONLY}
        return {**kept, "_counts": counts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _caller(self, operator: Operator) -> OperatorCaller:
        with self._lock:
            caller = self._callers.get(operator)
            if caller is None:
                breaker = CircuitBreaker(self._faults, self._pause, self._longest)
                sizer = BatchSizer(operator.cost / 1000, operator.timeout)
                caller = OperatorCaller(breaker, self._executor(operator.run), sizer)
                self._callers[operator] = caller
            return caller

    def _executor(self, run: str) -> Executor:
        if run == "here":
            return Executor()
        if run == "thread":
            return ThreadExecutor(self._left)
        # It imports cloudpickle, which other operators do not need.
        from tamis.operators.process_executor import ProcessExecutor

        return ProcessExecutor()

    def _count(
        self, operator: Operator, given: Answers, calls: int = 0, seconds: float = 0.0
    ) -> None:
        with self._lock:
            count = self._counts.get(operator.name)
            if count is None:
                count = self._counts[operator.name] = CallCounts(operator.name)
            count.calls += calls
            count.seconds += seconds
            count.enter(given)

    def _report_outcome(
        self, caller: OperatorCaller, entered: int, given: Answers, *, at_once: bool
    ) -> None:
        """A call with any answer is a success; a refusal of the event counts as an answer."""
        last = given[-1]
        with self._lock:
            if isinstance(last, Fault) and all(_failed(each) for each in given):
                caller.breaker.failed(entered, last.reason, self._clock(), at_once=at_once)
            else:
                caller.breaker.answered()


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
_PROCESS_ONLY = ("_lock", "_callers")  # not part of a pickle
_RUNNERS: weakref.WeakSet[Runner] = weakref.WeakSet()


def _forked() -> None:
    """Drop the threads, processes and locks of the parent."""
    for runner in list(_RUNNERS):
        runner._begin()


os.register_at_fork(after_in_child=_forked)
