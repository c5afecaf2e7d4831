"""What an engine is like after the repair that follows an interrupted change."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Operator, Schema
from tamis.encode.terms import Terms
from tamis.engine.ids import IdTable
from tamis.errors import EngineError, MatcherError
from tamis.language import parse
from tamis.language.limits import TEXT_LIMIT
from tamis.match.base import Slots
from tamis.match.lesubscribe.naive import Naive
from tamis.model.condition import Or
from tamis.model.operator import Signature
from tests.unit.engine.interrupting import interrupt

# Not every place passes an interrupt on: a callback of the garbage collector does not.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SCHEMA = Schema.from_dict({"attributes": {"n": "integer", "s": "text"}})


def _break(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is interrupted right before its last step."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(IdTable, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.subscribe('s = "broken" or n = 1', id="broken")
    assert engine.torn
    assert "broken" not in engine


def test_a_number_is_not_given_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(SCHEMA)
    assert [engine.subscribe("n = 1") for _ in range(3)] == [0, 1, 2]
    engine.unsubscribe(2)
    _break(engine, monkeypatch)
    assert engine.subscribe("n = 1") == 3
    assert engine.ids() == [0, 1, 3]
    assert sorted(engine.match({"n": 1})) == [0, 1, 3]


def test_batches_of_before_are_refused_and_the_tally_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(SCHEMA, threads=2)
    engine.subscribe("n = 1")
    engine.match({"n": 1})
    batch = engine.encode([{"n": 1}])
    matcher = engine.matcher
    _break(engine, monkeypatch)
    with pytest.raises(Exception, match="encode it again"):
        engine.match_batch(batch)
    engine.match_batch(engine.encode([{"n": 1}]))
    assert engine.matcher is matcher
    assert matcher.tally.events == 2


def test_the_operators_are_those_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    def op(answer: bool) -> Operator:
        return Operator(lambda n: answer, Signature("agrees", (), ("n",)), run="here")

    engine = Engine(SCHEMA, operators=op(True))
    engine.subscribe("agrees() and n = 1 or n = 2 and agrees()", id="old")
    engine.match({"n": 1})
    engine.calls.operators = engine.calls.operators.over({"agrees": op(False)})  # defined again
    engine.subscribe("agrees() and n = 1", id="new")
    _break(engine, monkeypatch)
    assert engine.match({"n": 1}) == ["old"]
    engine.subscribe("agrees() and n = 1", id="newer")
    assert engine.match({"n": 1}) == ["old"]
    assert engine.report()["agrees"].events > 2
    engine.check()


def test_conditions_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, conditions, rows of tables, and conditions that are too long as text."""
    engine = Engine(SCHEMA)
    engine.subscribe("n = 1", id="text")
    long = Or(tuple(parse(f's = "{letter * 1000}"') for letter in map(chr, range(200, 300))))
    engine.subscribe(long, id="long")
    engine.subscribe_table(pa.table({"id": [5, 4], "condition": ["n < 2", "n > 0"]}))
    engine.subscribe_table(pa.table({"id": ["row"], "condition": ["n >= 1"]}))
    engine.extend(Schema.from_dict({"attributes": {"n": "integer", "s": "text", "m": "integer"}}))
    before = [(id, engine.condition(id)) for id in engine.ids()]
    assert len(str(before)) > TEXT_LIMIT
    _break(engine, monkeypatch)
    assert sorted(map(str, engine.match({"n": 1, "m": 2}))) == ["4", "5", "row", "text"]
    assert engine.match({"s": chr(250) * 1000}) == ["long"]
    assert [(id, engine.condition(id)) for id in engine.ids()] == before
    engine.check()


def test_long_conditions_of_an_opened_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe(Or(tuple(parse(f's = "{"x" * i}"') for i in range(990, 1090))), id="long")
    engine.subscribe("n = 1", id="short")
    engine.save(tmp_path / "index")
    opened = Engine.open(tmp_path / "index")
    _break(opened, monkeypatch)
    assert opened.match({"n": 1, "s": "x" * 1000}) == ["long", "short"]
    opened.check()


def test_a_table_that_is_taken_together() -> None:
    """Most of its rows are gone, so the rest moves to a smaller column, in one step."""
    engine = Engine(SCHEMA)
    texts = [f"n = {i}" for i in range(1100)]
    engine.subscribe_table(pa.table({"id": range(1100), "condition": texts}))
    for id in range(1081):
        engine.unsubscribe(id)
    after = 1
    while len(engine) > 15:
        seen = interrupt(partial(engine.unsubscribe, engine.ids()[0]), after)
        after = after + 197 if seen == after else 1
        assert all(engine.condition(left) == f"n = {left}" for left in engine.ids())
    engine.check()


class _Once(Naive):
    """Takes each clause once, and refuses all afterwards."""

    taken = 0

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self.taken += len(slots)
        if self.taken > 3:
            raise MatcherError("no more")


def test_a_matcher_that_cannot_be_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(SCHEMA, _Once())
    engine.subscribe("n = 1", id="a")
    _break(engine, monkeypatch)
    for _ in range(2):
        with pytest.raises(EngineError, match=r"interrupted, and .* cannot be rebuilt.*no more"):
            engine.match({"n": 1})
    assert engine.ids() == ["a"]
    assert engine.condition("a") == "n = 1"


def test_a_refusal_costs_no_repair() -> None:
    engine = Engine(SCHEMA, _Once())
    for id in range(3):
        engine.subscribe("n = 1", id=id)
    slots = engine.slot_table
    with pytest.raises(MatcherError, match="no more"):
        engine.subscribe('s = "x"')
    with pytest.raises(MatcherError, match="no more"):
        engine.subscribe_table(pa.table({"id": [9], "condition": ["n = 2"]}))
    assert not engine.torn
    assert sorted(engine.match({"n": 1})) == [0, 1, 2]
    assert engine.slot_table is slots


# -- check -----------------------------------------------------------------------------------------


def _filled() -> Engine:
    operator = Operator(lambda n: n > 1, Signature("big", (), ("n",)), run="here")
    engine = Engine(SCHEMA, operators=operator)
    for id, text in enumerate(
        ["n = 1", 's = "b" or n = 2', 's like "%a%"', "big() or n = 3", 's > "c" and n = 2']
    ):
        engine.subscribe(text, id=id)
    engine.subscribe_table(pa.table({"id": ["x", "y"], "condition": ["n = 1", 's = "d"']}))
    engine.unsubscribe(0)
    return engine


def _swap_ids(engine: Engine) -> None:
    number = engine.slot_table._ids._number
    number[[1, 3]] = number[[3, 1]]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda engine: engine.slot_table._leader_of.__delitem__(2),
        lambda engine: engine.slot_table._leader_of.__setitem__("z", 3),
        lambda engine: engine.slot_table._ids.put(1, 77),
        lambda engine: engine.slot_table._ids.drop(engine.slot_table.slots("x")[0], "x"),
        _swap_ids,
        lambda engine: engine.slot_table._free.append(1),
        lambda engine: engine.slot_table._free.clear(),
        lambda engine: engine.slot_table._followers.__delitem__(1),
        lambda engine: engine.slot_table._leader.__setitem__(1, -1),
        lambda engine: engine.slot_table._sources._single.__delitem__(1),
        lambda engine: engine.slot_table._sources._single.__setitem__(0, "n = 1"),
        lambda engine: engine.slot_table._sources._column_of.fill(-1),
        lambda engine: engine.patterns.remove(3),
        lambda engine: engine.patterns.add(0, engine.patterns.check()[3]),
        lambda engine: engine.patterns._test.fill(-1),
        lambda engine: engine.calls.remove(min(engine.calls.texts())),
        lambda engine: engine.calls._direct.only.fill(-1),
        lambda engine: engine.calls.predicates._users[0].add(1),
        lambda engine: engine.encoder.labels[2].add({"b": 1}),
        lambda engine: engine.encoder.labels[2].drop(["d"]),
        lambda engine: engine.encoder.patterned.clear(),
        lambda engine: engine.matcher.remove(np.array([1])),
    ],
)
def test_check_sees_a_broken_part(spoil: Any) -> None:
    engine = _filled()
    engine.check()
    spoil(engine)
    with pytest.raises(AssertionError):
        engine.check()


# -- fork ------------------------------------------------------------------------------------------

_FORK = """
import os, sys, threading
from tamis import Engine, Operator, Schema
from tamis.errors import EngineError
from tamis.model.operator import Signature

called, go = threading.Event(), threading.Event()

def waits(n):
    called.set()
    go.wait(60)
    return True

schema = Schema.from_dict({"attributes": {"n": "integer"}})
operator = Operator(waits, Signature("waits", (), ("n",)), run="here")
busy, idle = (Engine(schema, operators=operator) for _ in range(2))
busy.subscribe("waits()")
idle.subscribe("n = 1", id="one")
thread = threading.Thread(target=busy.match, args=({"n": 1},))
thread.start()
called.wait(60)
child = os.fork()
if not child:
    answers = []
    for call in (lambda: busy.match({"n": 1}), lambda: busy.subscribe("n = 2"), busy.close):
        try:
            call()
        except EngineError as why:
            answers.append("forked while another thread used the engine" in str(why))
    answers.append(idle.match({"n": 1}) == ["one"])
    os._exit(0 if answers == [True] * 4 else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go.set()
thread.join()
assert busy.match({"n": 1}) == [0], "the parent goes on"
sys.exit(status)
"""


def test_a_fork_in_the_middle_of_a_call_raises_in_the_child() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORK], timeout=120, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
