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
from threading import Lock
from typing import Any

from tamis.errors import OperatorError, counted
from tamis.model.operator import Fault, Rows
from tamis.operators.batch_size import BatchSizer
from tamis.operators.caller import FailedCall, OperatorCaller
from tamis.operators.executor import Events, Executor
from tamis.operators.operator import Operator, key_of
from tamis.operators.operator_breaker import Entered, OperatorBreaker
from tamis.operators.report import CallCounts, Report
from tamis.operators.results import Answers, answers
from tamis.operators.thread_executor import ThreadExecutor


class Runner:
    """Calls operators inline, in threads or in processes, with limits on time and on faults.

    An operator with certain constants is set aside for `pause` seconds after `faults` faults in a
    row, or when half of its last `4 * faults` calls were faults; then one call may try. Each pause
    is twice as long as the last one, up to `longest`. Other constants are still called, unless the
    operator is down (see `OperatorBreaker`). Each operator may have `left` abandoned calls in
    threads.

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
        """One answer for each event, from the operator: rows, or a fault.

        `reads` has, for each event, one value for each attribute that the operator reads;
        `arguments` has one entry for each parameter of the call, None for a variable.
        """
        if operator.pairs:
            return self.call_pairs(operator, reads, [arguments] * len(reads))
        handed = operator.handed(arguments)
        _check_reads(operator, reads)
        caller, keys = self._caller(operator), [key_of(handed)] * len(reads)
        if operator.batch:
            return self._call_batch(caller, operator, reads, handed, keys)
        if operator.run == "here":
            return self._call_here(caller, operator, reads, handed, keys)
        return [
            each
            for at in range(len(reads))
            for each in self._call(caller, operator, reads[at : at + 1], handed, keys[:1])
        ]

    def call_pairs(
        self, operator: Operator, reads: Events, arguments: Sequence[Sequence[Any]]
    ) -> Answers:
        """Like `call` for an operator that takes pairs, with arguments for each event."""
        _check_reads(operator, reads)
        caller, now = self._caller(operator), self._clock()
        given = {id(each): tuple(operator.handed(each).items()) for each in arguments}
        keys = [key_of(dict(given[id(each)])) for each in arguments]
        # Constants that are set aside stay out of the calls of others.
        with self._lock:
            out = {key: caller.refusal(key, now) for key in dict.fromkeys(keys)}
        found: Answers = [out[key] or () for key in keys]
        called = [at for at, key in enumerate(keys) if out[key] is None]
        events = [(*reads[at], *(value for _, value in given[id(arguments[at])])) for at in called]
        mine = [keys[at] for at in called]
        for at, answer in zip(
            called, self._call_batch(caller, operator, events, {}, mine), strict=True
        ):
            found[at] = answer
        refused = [at for at, key in enumerate(keys) if out[key] is not None]
        if refused:
            self._count(operator, [found[at] for at in refused], [keys[at] for at in refused])
        return found

    def _call_here(
        self,
        caller: OperatorCaller,
        operator: Operator,
        reads: Events,
        handed: dict[str, Any],
        keys: list[Hashable],
    ) -> Answers:
        """One call after the other in this thread; counted together up to the next fault."""
        found: Answers = []
        while len(found) < len(reads):
            key, start = keys[0], len(found)
            with self._lock:
                entered = caller.enter(key, self._clock())
            if isinstance(entered, Fault):
                rest: Answers = [entered] * (len(reads) - start)
                self._count(operator, rest, keys[start:])
                return [*found, *rest]
            begun = time.perf_counter()
            for read in reads[start:]:
                came = answers(operator, (read,), handed)
                found.append(came if isinstance(came, Fault) else came[0])
                if isinstance(found[-1], Fault):
                    break
            seconds = time.perf_counter() - begun
            mine = found[start:]
            self._count(operator, mine, keys[start : len(found)], len(mine), seconds)
            with self._lock:
                good = len(mine) - _failed(mine[-1])
                if good:
                    caller.breaker.answered(key, good)
                if good < len(mine):
                    assert isinstance(mine[-1], Fault)
                    caller.breaker.failed(key, entered, mine[-1].reason, self._clock(), seconds)
        return found

    def _call_batch(
        self,
        caller: OperatorCaller,
        operator: Operator,
        events: Events,
        handed: dict[str, Any],
        keys: list[Hashable],
    ) -> Answers:
        """One answer for each event, from as many calls as are likely to meet the timeout.

        After a call that hangs, the rest is not tried: a batch loses one timeout at most.
        """
        if operator.run == "here":  # without a timeout
            return self._call(caller, operator, events, handed, keys)
        size_key = tuple(handed.values())  # pairs share no constants: they have one key
        found: Answers = []
        while len(found) < len(events):
            part = slice(len(found), len(found) + caller.batch_size(size_key))
            given = self._call(caller, operator, events[part], handed, keys[part], size_key)
            found += given
            if any(isinstance(each, Fault) and each.kind == "timeout" for each in given):
                rest = keys[len(found) :]
                self.skipped(operator, rest, NOT_TRIED)
                found += [NOT_TRIED] * len(rest)
        return found

    def _call(
        self,
        caller: OperatorCaller,
        operator: Operator,
        reads: Events,
        handed: dict[str, Any],
        keys: list[Hashable],
        size_key: Hashable = None,
    ) -> Answers:
        """One answer for each event, from one call; if it raised, from calls for its parts.

        `keys` has the key of the constants of each event.

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
            events, mine = reads[start:end], keys[start:end]
            # The fault of a call for several constants blames none of them.
            key = mine[0] if mine[0] == mine[-1] and len(set(mine)) == 1 else None
            entered: Entered | Fault | None = None
            if left <= 0 and otherwise is not None:
                entered = otherwise
            elif key is not None:
                with self._lock:
                    entered = caller.enter(key, self._clock())
            if isinstance(entered, Fault):
                given: Answers = [entered] * len(events)
                self._count(operator, given, mine)
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
            self._count(operator, given, mine, 1, seconds)
            if sized:
                with self._lock:
                    caller.learn(size_key, len(events), came, seconds)
            if given:
                self._report_outcome(caller, mine, entered, came, given, seconds)
                if len(given) == len(reads):
                    return given
                found.update(enumerate(given, start))
        return [found[at] for at in range(len(reads))]

    def trusts(self, operator: Operator, key: Hashable) -> bool:
        """Whether the last call with these constants was answered."""
        return self._caller(operator).breaker.trusts(key)

    def skipped(self, operator: Operator, keys: list[Hashable], fault: Fault) -> None:
        """Count events for which the caller made no call, since the operator would not answer.

        So the report covers all events that needed an answer. `keys` has the key of the constants
        of each. These faults do not count for the circuit breakers.
        """
        if keys:
            self._count(operator, [fault] * len(keys), keys)

    def report(self) -> Report:
        """The counts of calls and faults, by operator and by constants."""
        with self._lock:
            now = self._clock()
            counts = {name: count.copy() for name, count in self._counts.items()}
            for operator, caller in self._callers.items():
                count = counts.get(operator.name)
                if count is None:
                    continue
                count.set_aside_for = caller.pause_left(now)
                for key, left in caller.breaker.pauses(now).items():
                    call = operator.shown(key)
                    if call in count.constants:
                        count.constants[call].set_aside_for = left
            return Report.of(counts.values())

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
            counts = {name: count.copy() for name, count in self._counts.items()}
        kept = {name: value for name, value in vars(self).items() if name not in _PROCESS_ONLY}
        return {**kept, "_counts": counts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _caller(self, operator: Operator) -> OperatorCaller:
        with self._lock:
            caller = self._callers.get(operator)
            if caller is None:
                breaker = OperatorBreaker(self._faults, self._pause, self._longest)
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

    def _counted(self, operator: Operator) -> CallCounts:
        count = self._counts.get(operator.name)
        if count is None:
            count = self._counts[operator.name] = CallCounts(operator.name)
        return count

    def _count(
        self,
        operator: Operator,
        given: Answers,
        keys: list[Hashable],
        calls: int = 0,
        seconds: float = 0.0,
    ) -> None:
        with self._lock:
            count = self._counted(operator)
            count.calls += calls
            count.seconds += seconds
            if count.enter(given):
                for key, answer in zip(keys, given, strict=True):
                    if isinstance(answer, Fault) and key != ():
                        count.blame(operator.shown(key), answer)

    def _report_outcome(
        self,
        caller: OperatorCaller,
        keys: list[Hashable],
        entered: Entered | None,
        came: Answers | FailedCall,
        given: Answers,
        seconds: float,
    ) -> None:
        """Tell the circuit breakers. Constants with any answer succeeded; a refusal is an answer.

        `entered` is None for a call with several constants: it blames those whose own results are
        faults, but none if there are no results.
        """
        with self._lock:
            now, breaker = self._clock(), caller.breaker
            if not isinstance(came, list) and came.stuck:
                if entered is None:
                    entered = breaker.unasked(keys[0])
                breaker.failed_altogether(entered, "1 fault in a row", came.fault.reason, now)
                return
            if entered is None and not isinstance(came, list):
                return
            last = {key: answer for key, answer in zip(keys, given, strict=True) if _failed(answer)}
            good = {key for key, answer in zip(keys, given, strict=True) if not _failed(answer)}
            for key in good:
                breaker.answered(key)
            for key, fault in last.items():
                if key not in good:
                    assert isinstance(fault, Fault)
                    mine = breaker.unasked(key) if entered is None else entered
                    breaker.failed(key, mine, fault.reason, now, seconds)


def _check_reads(operator: Operator, reads: Events) -> None:
    for event in reads:
        if len(event) != len(operator.read_as):
            raise OperatorError(
                f"operator {operator.name!r} reads {counted(len(operator.read_as), 'attribute')}, "
                f"got {counted(len(event), 'value')}"
            )


def _failed(answer: Rows | Fault) -> bool:
    return isinstance(answer, Fault) and answer.kind != "refused"


NOT_TRIED = Fault("timeout: not tried, it hung for others of the batch", "timeout")
_PROCESS_ONLY = ("_lock", "_callers")  # not part of a pickle
_RUNNERS: weakref.WeakSet[Runner] = weakref.WeakSet()


def _forked() -> None:
    """Drop the threads, processes and locks of the parent."""
    for runner in list(_RUNNERS):
        runner._begin()


os.register_at_fork(after_in_child=_forked)
