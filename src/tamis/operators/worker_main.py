"""The main loop of a worker process: reads calls, answers them, and ends with its parent.

The function comes from a complete file, so a worker starts without its parent. Messages are pickles
with their length in front. What the function prints goes to standard error, and its standard input
is empty.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from io import TextIOWrapper
from typing import Any, BinaryIO

from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator
from tamis.operators.results import answers, describe, raised

HEAD = struct.Struct(">Q")
READY = "ready"
_GRACE = 5.0  # seconds after the timeout: a parent that has not killed the call by then is dead


def main(function: int, starting: float) -> None:
    """Serve until the parent is gone.

    The operator is in the open file `function`; loading it may take `starting` seconds.
    """
    requests, replies = _own_pipes()
    status = 0
    try:
        _serve(function, starting, requests, replies)
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001 - one line instead of a traceback
        status = 70
        print(f"a worker process of an operator failed: {error!r}", file=sys.stderr)
    # Threads and exit handlers of the function must not keep the process alive.
    os._exit(status)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the pipes to the parent away from standard input and output."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # the parent has no standard error
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    return requests, replies


def _serve(function: int, starting: float, requests: BinaryIO, replies: BinaryIO) -> None:
    with os.fdopen(function, "rb") as file:
        body = file.read()
    # The parent may not call for long, or never: only this timer ends a start that hangs.
    signal.setitimer(signal.ITIMER_REAL, starting + _GRACE)
    try:
        operator = pickle.loads(body)
    except BaseException as error:  # noqa: BLE001 - importing a module runs foreign code
        _write(replies, describe(error))
        return
    del body
    signal.setitimer(signal.ITIMER_REAL, 0)
    _write(replies, READY)
    while True:
        sent = _read(requests)
        # The parent kills a call that takes too long. If the parent is dead the kernel does, even
        # when the function never returns to the interpreter.
        signal.setitimer(signal.ITIMER_REAL, operator.timeout + _GRACE)
        reply = _answer(operator, sent)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies, reply)


def _answer(operator: Operator, sent: bytes) -> Any:
    """The reply: the answers for each event, a fault, or a text if the call is unreadable."""
    try:
        events, handed = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - values may be of foreign classes
        return describe(error)
    try:
        found = answers(operator, events, handed)
    except KeyboardInterrupt as error:  # raised by the function: there is no keyboard
        found = raised(error)
    return _plain(found) if isinstance(found, Fault) else {"each": [*map(_plain, found)]}


def _plain(answer: Rows | Fault) -> Any:
    """Only built-in types cross the pipe; a fault becomes a list of its two texts."""
    return [answer.reason, answer.kind] if isinstance(answer, Fault) else answer


def _read(requests: BinaryIO) -> bytes:
    (size,) = HEAD.unpack(_exactly(requests, HEAD.size))
    return _exactly(requests, size)


def _exactly(requests: BinaryIO, size: int) -> bytes:
    found = requests.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _write(replies: BinaryIO, reply: Any) -> None:
    body = pickle.dumps(reply, protocol=5)
    replies.write(HEAD.pack(len(body)) + body)
    replies.flush()
