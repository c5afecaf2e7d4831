"""Interrupts at any bytecode, and a small world of changes to interrupt, with its model."""

from __future__ import annotations

import dis
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pyarrow as pa

from tamis import Engine, Operator, Schema
from tamis.language import parse, to_text
from tamis.model import semantics
from tamis.model.condition import Predicate
from tamis.model.operator import Parameter, Signature
from tamis.schedule.statistics import PredicateEstimate
from tests.unit.engine.world import predicate_row, predicate_table

_ATTRIBUTES = {
    "n": "integer",
    "s": "text",
    "t": "text",
    "e": {"kind": "structs", "attributes": {"n": "integer", "s": "text"}},
}
SCHEMA = Schema.from_dict({"attributes": _ATTRIBUTES})
WIDER = Schema.from_dict({"attributes": {**_ATTRIBUTES, "w": "text", "m": "integer"}})
EVENTS: list[dict[str, Any]] = [
    {"n": 1, "s": "aab", "t": "xx", "e": [{"n": 1, "s": "ab"}, {"n": 2}]},
    {"n": 2, "s": "ab", "e": [{"n": 2, "s": "ab"}]},
    {"n": 3, "s": "b", "t": "cab"},
    {"n": 7, "t": "c"},
    {"s": "aaaab"},
    {},
]


def _above(n: int, least: int) -> bool:
    return n > least


ABOVE = Operator(
    _above, Signature("above", (Parameter("least", "number", False),), ("n",)), run="here"
)


# -- interrupts ------------------------------------------------------------------------------------


@cache
def _unbreakable(code: CodeType) -> frozenset[int]:
    """The bytecodes between the end of a `with` block and its exit.

    Python looks for signals after calls and at jumps, so never here. Otherwise no lock would be
    safe. With an exception here, the exit is not called.
    """
    found: set[int] = set()
    steps = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    for at, step in enumerate(steps):
        none = [each.opname == "LOAD_CONST" and each.argval is None for each in steps[at : at + 3]]
        if none == [True] * 3:
            end = at + 3 + (steps[at + 3].opname == "PRECALL")
            if steps[end].opname == "CALL":
                first = at - (steps[at - 1].opname in ("SWAP", "NOP"))
                found.update(each.offset for each in steps[first : end + 1])
        if step.opname == "WITH_EXCEPT_START":
            found.update((steps[at - 1].offset, step.offset))
    return frozenset(found)


def interrupt(doing: Callable[[], object], after: int) -> int:
    """Do something, with a KeyboardInterrupt before bytecode number `after`.

    Returns how many bytecodes there were: fewer than `after` if it came to its end.
    """
    seen = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if event == "opcode" and frame.f_lasti not in _unbreakable(frame.f_code):
            seen += 1
            if seen == after:
                raise KeyboardInterrupt
        return step

    def begin(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is interrupted.__code__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    try:
        sys.settrace(begin)
        interrupted(doing)
    finally:
        sys.settrace(before)
    return seen


def interrupted(doing: Callable[[], object]) -> bool:
    """Do something; return whether it was interrupted."""
    try:
        doing()
    except KeyboardInterrupt:
        return True
    except SystemError as why:  # Numba runs Python code to convert the arguments of a kernel
        if not isinstance(why.__cause__, KeyboardInterrupt):
            raise
        return True
    return False


# -- changes ---------------------------------------------------------------------------------------

Live = dict[Any, str | None]  # conditions by id, in order of arrival; None matches every event


@dataclass(frozen=True)
class Case:
    """Something to interrupt, and what it adds and removes."""

    name: str
    do: Callable[[Engine], object]
    add: Sequence[tuple[Any, str | None]] = ()
    remove: Any = None
    schema: Schema | None = None

    def after(self, live: Live) -> Live:
        """What is live after it."""
        return {id: text for id, text in (*live.items(), *self.add) if id != self.remove}


def subscribe(id: Any, text: str) -> Case:
    return Case(f"subscribe {id}", lambda engine: engine.subscribe(text, id), [(id, text)])


def unsubscribe(id: Any) -> Case:
    return Case(f"unsubscribe {id}", lambda engine: engine.unsubscribe(id), remove=id)


def subscribe_texts(ids: Sequence[Any], texts: Sequence[str]) -> Case:
    table = pa.table({"id": ids, "condition": texts})
    do: Callable[[Engine], object] = lambda engine: engine.subscribe_table(table)  # noqa: E731
    return Case(f"table of {ids[0]}", do, list(zip(ids, texts, strict=True)))


def subscribe_rows(ids: Sequence[Any], rows: Sequence[Sequence[tuple[str, str, Any]]]) -> Case:
    table = predicate_table([[predicate_row(*each) for each in row] for row in rows], list(ids))
    texts = [" and ".join(to_text(Predicate(*each)) for each in row) or None for row in rows]
    do: Callable[[Engine], object] = lambda engine: engine.subscribe_table(table)  # noqa: E731
    return Case(f"table of {ids[0]}", do, list(zip(ids, texts, strict=True)))


def _repair(engine: Engine) -> None:
    engine.torn = True
    engine.match({})


class _Past(NamedTuple):
    """Statistics of past events."""

    sample: pa.Table
    known: dict[str, PredicateEstimate]


PAST = _Past(pa.Table.from_pylist(EVENTS), {"above(1)": PredicateEstimate(0.5, 1.0, 9)})


SEVERAL = 'n < 3 and s < "ab" or t like "%a%" or s starts with "aa" and n != 1'
BEFORE: list[Case] = [
    subscribe(100, "n > 2"),
    subscribe("gone", 'n = 1 or s = "ab" or t = "c"'),
    subscribe("several", 's >= "aa" and t < "d" or n in (1, 7)'),
    subscribe_texts(
        [0, 1, 2, 3, 4, 5],
        ["n = 1", 's = "b"', SEVERAL, 't starts with "c"', "above(1)", 's < "aaab"'],
    ),
    subscribe("called", 'above(2) or s = "ab" and above(0)'),
    subscribe_rows(
        ["p0", "p1", "p2"], [[("n", ">=", 2), ("s", "=", "b")], [], [("t", "starts with", "x")]]
    ),
    subscribe("patterned", 's like "%a%" and t like "%c%" and n > 1'),
    subscribe("element", 'some x in e (x.n > 1 and x.s = "ab") or n = 7'),
    subscribe("same", 'not some x in e (x.n > 1 and x.s = "ab")'),
    unsubscribe("gone"),
    unsubscribe(1),
]
CASES: list[Case] = [
    subscribe(8, "n >= 2"),
    subscribe("x", 's = "aaab" and t != "cab"'),
    subscribe("y", SEVERAL + ' or s = "aaaab" or t = "ca"'),
    subscribe("z", 'above(0) and s < "b" or above(2) and not above(5) or t like "%x%"'),
    subscribe("e", 'some x in e (x.s < "b" and x.n < 2) and not some x in e (x.n > 3)'),
    subscribe_texts([30, 31], ["some x in e (x.n = 1)", "some x in e (x.n > 1 and x.s = ab)"]),
    subscribe_texts(
        [20, 21, 22, 23, 24],
        ["n = 2", 's = "aab"', 's > "aaa" or n = 7', 't like "%ab%"', "above(0) and n < 3"],
    ),
    subscribe_rows(
        ["q0", "q1", "q2", "q3"],
        [[("s", "=", "aaab")], [("t", ">", "ca"), ("n", "<", 9)], [], [("s", "ends with", "b")]],
    ),
    *map(unsubscribe, (100, "several", 2, 4, "called", "p1", "patterned", "element")),
    Case("extend", lambda engine: engine.extend(WIDER), schema=WIDER),
    Case("match", lambda engine: [engine.match(each) for each in EVENTS[:2]]),
    Case("match_batch", lambda engine: engine.match_batch(EVENTS)),
    Case("match_bitmap", lambda engine: engine.match_bitmap(EVENTS)),
    Case("expect", lambda engine: engine.expect(PAST)),
    Case("pickle", pickle.dumps),
    Case("repair", _repair),
]


# -- the model -------------------------------------------------------------------------------------


@cache
def holds(text: str | None, event: int) -> bool:
    """Whether an event matches, by the definition of truth."""
    if text is None:
        return True
    evaluators = {"above": (ABOVE.signature, _rows)}
    return semantics.satisfies(parse(text), SCHEMA.event(EVENTS[event]), SCHEMA, evaluators)


def _rows(reads: Any, arguments: Any) -> Any:
    return ((),) if _above(*reads, *arguments) else ()


def check(engine: Engine, live: Live) -> None:
    """Compare every answer with the model."""
    assert engine.ids() == list(live)
    assert len(engine) == len(live)
    expected = [[id for id, text in live.items() if holds(text, at)] for at in range(len(EVENTS))]
    for at, event in enumerate(EVENTS):
        assert same(engine.match(event), expected[at])
    batch, bits = engine.match_batch(EVENTS), engine.match_bitmap(EVENTS)
    for at, ids in enumerate(expected):
        assert same(batch[at], ids)
        assert same(bits[at], ids)
    for at, (id, text) in enumerate(live.items()):
        assert id in engine
        assert engine.condition(id) == (None if text is None else to_text(parse(text)))
        some = at % len(EVENTS)
        assert engine.explain(id, EVENTS[some]).holds == holds(text, some)
    engine.check()


def same(found: Any, expected: Sequence[Any]) -> bool:
    """Whether these are the same ids, in any order."""
    return sorted(found, key=str) == sorted(expected, key=str)
