"""The default matcher is compiled in a process of its own, while a simple matcher stands in.

    python -m tamis.broker.matching.matcher_compilation

On a new machine, the default matcher takes half a minute or more to compile, and the stand-in a
few seconds. So the first notifications come at once. Compiling in the process of the broker would
not do: a lock of the compiler would make the stand-in wait. The process compiles by using the
matcher on a few subscriptions and events. The code is cached on disk, where the broker finds it.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.engine import Engine
from tamis.files.lock import locked
from tamis.index.kernel import cache_folder, is_compiled, note_compiled
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from numba import Dispatcher

STAND_IN = "scan"
_LOCK = "compiling.lock"
_MANY, _FEW = 3_000, 200  # subscriptions: as a table, and one by one
_EVENTS = 600
_ATTRIBUTES = {
    "price": "decimal",
    "count": "integer",
    "title": "text",
    "category": "text",
    "sold": "boolean",
    "weight": "integer",
    "size": "text",
}


class MatcherCompilation:
    """The process that compiles. It has a session of its own, so Ctrl-C does not reach it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @staticmethod
    def is_needed() -> bool:
        """Whether the default matcher is not compiled on this machine yet, but could be."""
        return not is_compiled(*_kernels())

    @property
    def has_ended(self) -> bool:
        """Whether it is done. If it failed, the process of the broker compiles for itself."""
        return self._process.poll() is not None

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def _kernels() -> tuple[Dispatcher[..., Any], ...]:
    """Those that call all others of the default matcher."""
    from tamis.match.default.passes.batch_pass import insert_framed, match_chunk, take_out_framed

    return match_chunk, insert_framed, take_out_framed


def compile_matcher() -> None:
    """Use the default matcher for all that a broker does with it."""
    engine = Engine(Schema.from_dict({"attributes": _ATTRIBUTES}))
    table = pa.table({"id": range(_MANY), "condition": [_condition(at) for at in range(_MANY)]})
    engine.subscribe_table(table)
    events = [_event(at) for at in range(_EVENTS)]
    engine.match_batch(events)
    for at in range(_FEW):
        engine.subscribe(_condition(7 * at), _MANY + at)
    for at in range(0, _MANY, 2):
        engine.unsubscribe(at)
    engine.match_batch(events)
    engine.match(events[0])


def _condition(at: int) -> str:
    """Conditions with one to four predicates: values, ranges, prefixes, alternatives."""
    parts = [
        f"price < {at % 500}",
        f"count between {at % 90} and {at % 90 + 5}",
        f'title starts with "t{at % 50}"',
        f"category = c{at % 40}",
        "sold = true",
        f"(size = s{at % 30} or weight = {at % 70})",
        f"not price > {at % 300}",
        f"weight > {at % 50}",
    ]
    return " and ".join(parts[(at + step) % len(parts)] for step in range(1 + at % 4))


def _event(at: int) -> dict[str, Any]:
    whole = {
        "price": float(at % 600),
        "count": at % 100,
        "title": f"t{at % 60} of {at}",
        "category": f"c{at % 45}",
        "sold": at % 2 == 0,
        "weight": at % 80,
        "size": f"s{at % 35}",
    }
    return {name: value for name, value in whole.items() if at % 5 or name != "sold"}


def main() -> None:
    with ExitStack() as held:
        with suppress(OSError):  # others may compile, too: one after the other is sooner done
            folder = cache_folder()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(locked(folder / _LOCK))
        compile_matcher()
        note_compiled(*_kernels())


if __name__ == "__main__":
    main()
