"""The other side of a worker process: reads calls, answers them, and ends with its parent.

The function is read from a file, whole from the beginning, so that nobody has to feed a worker
that starts. Messages are pickles with their length in front. Standard output belongs to the
function: what it prints goes to standard error, and what it reads from standard input is nothing.
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
from tamis.operators.results import answers, raised, said

HEAD = struct.Struct(">Q")
READY = "ready"
_GRACE = 5.0  # seconds after which a call that nobody stopped was forgotten by a dead parent


def main(function: int, starting: float) -> None:
    """Serve until there is nobody to serve.

    The operator is in the open file `function`; it may take `starting` seconds to load it.
    """
    requests, replies = _own_pipes()
    status = 0
    try:
        _serve(function, starting, requests, replies)
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001 - a process that prints a trace helps nobody
        status = 70
        print(f"the worker process of an operator ends: {error!r}", file=sys.stderr)
    # Threads that the function has started, and its atexit, must not keep the process alive.
    os._exit(status)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take the pipes to the parent out of the function's way."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # the parent has closed its standard error
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
    # The parent may not ask for a long time, or never again: nobody else ends what hangs here.
    signal.setitimer(signal.ITIMER_REAL, starting + _GRACE)
    try:
        operator = pickle.loads(body)
    except BaseException as error:  # noqa: BLE001 - importing a module runs somebody's code
        _write(replies, said(error))
        return
    del body
    signal.setitimer(signal.ITIMER_REAL, 0)
    _write(replies, READY)
    while True:
        sent = _read(requests)
        # The parent kills a call that takes too long. If it died meanwhile the kernel does, even
        # when the function never lets the interpreter come to its senses.
        signal.setitimer(signal.ITIMER_REAL, operator.timeout + _GRACE)
        reply = _answered(operator, sent)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies, reply)


def _answered(operator: Operator, sent: bytes) -> Any:
    """What goes back: the answers for each event, a fault, or a text if it cannot be read."""
    try:
        events, handed = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - values may be of somebody's classes
        return said(error)
    try:
        found = answers(operator, events, handed)
    except KeyboardInterrupt as error:  # nobody types here: the function itself has raised it
        found = raised(error)
    return _plain(found) if isinstance(found, Fault) else {"each": [*map(_plain, found)]}


def _plain(answer: Rows | Fault) -> Any:
    """Only what Python has built in crosses the pipe; a fault is a list of its two texts."""
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
