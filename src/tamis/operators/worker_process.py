"""A worker process: it can be killed when it hangs, and may die without harm.

A worker is a fresh interpreter, not a fork: it shares no locks and no memory with this process, and
does not run the program's `__main__` again. The function goes there by cloudpickle, so it may come
from a script, a notebook or a closure. Every read, every write and the start have a deadline. The
start runs foreign code too: it imports the modules that the function needs.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from time import monotonic
from typing import Any

import cloudpickle

from tamis.model.operator import Fault
from tamis.operators.executor import (
    Events,
    LateError,
    LostError,
    NotStartedError,
    StartingError,
    StuckError,
)
from tamis.operators.operator import Operator
from tamis.operators.results import Answers, describe
from tamis.operators.serialization import dump_by_value
from tamis.operators.worker_main import HEAD, READY

START_LIMIT = 30.0  # seconds for a worker to import its modules; or its timeout, if longer
_NOISE = "its worker process sends invalid replies"
_LARGEST = 1 << 30  # bytes of a reply; a longer one is noise
# The worker has the module path of this process, with the folder of the script.
_BOOT = (
    "import sys; file, seconds, *sys.path[:] = sys.argv[1:]; sys.argv[1:] = []; "
    "from tamis.operators.worker_main import main; main(int(file), float(seconds))"
)


class UnsentError(LostError):
    """A value cannot be sent to the worker. The worker itself is healthy."""


class WorkerProcess:
    """One worker process with the function of an operator. It starts in the background."""

    def __init__(self, operator: Operator) -> None:
        try:
            body = dump_by_value(operator)
        except Exception as error:  # noqa: BLE001 - pickling runs foreign code
            raise NotStartedError(
                f"the function cannot be sent to a worker process: {describe(error)}"
            ) from None
        self._limit = max(START_LIMIT, operator.timeout)
        try:
            process = _started(body, self._limit)
        except OSError as error:
            raise NotStartedError(f"no worker process can be started: {describe(error)}") from None
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        # Runs when this object is collected, when it is killed, and at exit.
        self._end = weakref.finalize(self, _kill, process, os.getpid())
        _ALIVE.add(self)
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._timeout = operator.timeout
        self._until = monotonic() + self._limit  # the deadline of the start
        self._owes = False  # an answer that no caller waits for
        self.ready = False  # it has reported that it can be called

    def wait(self, deadline: float = math.inf) -> None:
        """Wait until it is ready; `StartingError` if it still starts at the deadline."""
        if self.ready:
            return
        until = min(deadline, self._until)
        try:
            _wait(self._out, select.POLLIN, until)
        except LateError:
            if deadline < self._until:
                raise StartingError("was still starting") from None
            if self._owes:
                raise
            raise self._stuck() from None
        try:
            reply = self._receive(until)
        except (LateError, LostError) as error:
            if self._owes:
                raise
            if monotonic() > self._until:  # so its own timer ended it
                raise self._stuck() from None
            raise NotStartedError(f"while it was loaded, {str(error) or _NOISE}") from None
        if not self._owes and reply != READY:
            raise NotStartedError(f"its worker process cannot load the function: {reply}")
        self._owes, self.ready = False, True

    def _stuck(self) -> StuckError:
        return StuckError(f"its worker process did not start within {self._limit:g} s")

    @property
    def healthy(self) -> bool:
        """Between calls: it is starting, or alive and silent."""
        if not self.ready:
            return True
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        return not poll.poll(0)

    def call(self, events: Events, handed: dict[str, Any], timeout: float) -> Answers | Fault:
        """The answers for the events; `LateError` after `timeout` seconds, with the start."""
        deadline = monotonic() + timeout
        started = self.ready
        self.wait(deadline)
        begun = monotonic()
        try:
            body = cloudpickle.dumps((list(events), handed), protocol=5)
        except Exception as error:  # noqa: BLE001 - pickling runs foreign code
            raise UnsentError(
                f"a value cannot be sent to a worker process: {describe(error)}"
            ) from None
        self._send(body, deadline)
        if not started:
            self._wait_briefly(begun, deadline)
        reply = self._receive(deadline)
        if isinstance(reply, str):
            raise UnsentError(f"a value cannot be read by a worker process: {reply}")
        return _answers(reply, len(events))

    def _wait_briefly(self, begun: float, deadline: float) -> None:
        """Wait for the answer to a call that has spent part of its time on the start.

        If no answer comes in time, the function is not to blame yet. To kill the worker would make
        the next call wait for a start too, and so on. Instead, the late answer is dropped.
        """
        try:
            _wait(self._out, select.POLLIN, deadline)
        except LateError:
            self._owes, self.ready = True, False
            self._until = begun + self._timeout
            raise StartingError("had just started") from None

    def kill(self) -> None:
        """Kill it and its children."""
        self._end()

    def disown(self) -> None:
        """In a fork of the parent: close our ends of the pipes, and leave the worker alone."""
        self._end.detach()
        _close(self._process)
        self._process.returncode = 0  # not our child: Popen must not wait for it

    def _send(self, body: bytes, deadline: float) -> None:
        left = memoryview(HEAD.pack(len(body)) + body)
        while left:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                _wait(self._in, select.POLLOUT, deadline)
            except OSError:
                raise LostError(self._death()) from None

    def _receive(self, deadline: float) -> Any:
        (size,) = HEAD.unpack(self._read(HEAD.size, deadline))
        if size > _LARGEST:
            raise LostError(_NOISE)
        body = self._read(size, deadline)
        try:
            return _PlainUnpickler(io.BytesIO(body)).load()
        except Exception:  # noqa: BLE001 - noise may raise anything when unpickled
            raise LostError(_NOISE) from None

    def _read(self, size: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                more = os.read(self._out, min(size - len(found), 1 << 20))
            except BlockingIOError:
                _wait(self._out, select.POLLIN, deadline)
                continue
            if not more:
                raise LostError(self._death())
            found += more
        return bytes(found)

    def _death(self) -> str:
        """How it ended, after it closed its pipes."""
        self.kill()
        status = self._process.returncode
        if status is None:
            return "its worker process died"
        if status >= 0:
            return f"its worker process ended (exit status {status})"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"its worker process was killed by {name}"


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, text, tuples and lists; refuses everything that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def _answers(reply: Any, events: int) -> Answers | Fault:
    match reply:
        case {"each": [*each]} if len(each) == events:
            return [answer if isinstance(answer, tuple) else _fault(answer) for answer in each]
    return _fault(reply)


def _fault(reply: Any) -> Fault:
    match reply:
        case [str(reason), "raised" | "refused" | "nonsense" as kind]:
            return Fault(reason, kind)
    raise LostError(_NOISE)


def _started(body: bytes, limit: float) -> subprocess.Popen[bytes]:
    """Start a process that loads the function on its own."""
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.seek(0)  # the process shares the position
        given = (str(file.fileno()), str(limit), *map(str, sys.path))
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=(file.fileno(),),
            start_new_session=True,  # it ignores Ctrl-C, and its children die with it
        )


def _wait(file: int, what: int, deadline: float) -> None:
    left = deadline - monotonic()
    poll = select.poll()
    poll.register(file, what)
    if left <= 0 or not poll.poll(left * 1000):
        raise LateError


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    """Kill a worker and its children; does nothing in a fork of its owner."""
    if os.getpid() != owner:
        return
    # The group first: after the wait, its number may belong to another process.
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    _close(process)


_ALIVE: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


def _forked() -> None:
    # While a fork held the pipes, the workers would not notice the end of their parent.
    for worker in list(_ALIVE):
        worker.disown()
    _ALIVE.clear()


os.register_at_fork(after_in_child=_forked)
