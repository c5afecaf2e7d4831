"""Conditions that are not multiplied out, and comparisons of attributes, against the semantics."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema, parse
from tamis.errors import ConditionError, NeverTrueError
from tamis.model.condition import And, Condition, Not, Or, Predicate
from tamis.model.semantics import satisfies
from tamis.testing import cases
from tamis.testing.engine_checks import agree

FLIGHTS = Schema.from_dict(
    {
        "attributes": {
            "carrier": "text",
            "dest": "text",
            "origin": "text",
            "delay": "integer",
            "gate": "text",
        },
        "event_types": {
            "flight": {
                "carrier": "optional",
                "dest": "optional",
                "origin": "optional",
                "delay": "optional multiple",
                "gate": "optional multiple",
            }
        },
    }
)


def tangles(engine: Engine, chooser: cases.Chooser, number: int) -> dict[int, Condition]:
    """Subscribe random conditions with residuals."""
    live: dict[int, Condition] = {}
    while len(live) < number:
        condition = cases.tangle(chooser)
        try:
            live[int(engine.subscribe(condition))] = condition
        except NeverTrueError:
            continue
    return live


def test_an_impossible_branch_does_not_refuse_the_condition() -> None:
    engine = Engine(FLIGHTS)
    engine.subscribe(
        "carrier = UA and (dest = SFO or dest = LAX) and not (dest = LAX and origin = JFK)", id="x"
    )
    assert engine.match({"carrier": "UA", "dest": "LAX", "origin": "EWR"}) == ["x"]
    assert engine.match({"carrier": "UA", "dest": "LAX", "origin": "JFK"}) == []
    with pytest.raises(NeverTrueError):
        engine.subscribe("delay < 5 and delay > 9 or dest = SFO and dest = LAX")


def test_nine_pairs_a_thousand_branches_and_deep_nests_are_taken() -> None:
    engine = Engine(FLIGHTS)
    pairs = " or ".join(f"(dest = D{n} and origin = O{n})" for n in range(9))
    engine.subscribe(f"not ({pairs})", id="pairs")
    many = " or ".join(f"(dest = D{n} and origin = O{n})" for n in range(1000))
    engine.subscribe(many, id="many")
    deep = "delay = 0"
    for n in range(1, 48):
        deep = f"(dest = D{n} or (origin != O{n} and {deep}))"
    engine.subscribe(deep, id="deep")
    engine.check()
    conditions = {"pairs": f"not ({pairs})", "many": many, "deep": deep}
    for event in (
        {"dest": "D3", "origin": "O3", "delay": 0},
        {"dest": "D3", "origin": "O4", "delay": 1},
        {"dest": "D998", "origin": "O998", "delay": 0},
        {"dest": "D998"},
    ):
        right = {id for id, text in conditions.items() if satisfies(parse(text), event, FLIGHTS)}
        assert set(engine.match(event)) == right
    assert len(engine.matcher) < 1100, "the pairs are not multiplied out"


def test_the_largest_condition_is_taken() -> None:
    wide = And(
        tuple(Or((Predicate("delay", "!=", n), Predicate("gate", "exists"))) for n in range(4999))
    )
    engine = Engine(FLIGHTS)
    engine.subscribe(wide, id="wide")
    assert engine.match({"delay": 5000}) == ["wide"]
    assert engine.match({"delay": 17}) == []
    with pytest.raises(ConditionError, match="10,002 predicates"):
        engine.subscribe(And((wide, wide.parts[0], wide.parts[1])))


def test_one_value_satisfies_the_clause_and_its_residual() -> None:
    engine = Engine(FLIGHTS)
    ors = " and ".join(f"(delay != {n} or dest = D{n})" for n in range(10, 16))
    engine.subscribe(f"delay > 5 and {ors}", id="x")
    assert engine.match({"delay": [3, 12]}) == []  # 3 fails delay > 5, 12 fails delay != 12
    assert engine.match({"delay": [12, 7]}) == ["x"]
    assert engine.match({"delay": [3, 12], "dest": "D12"}) == ["x"]


def test_a_program_repeats_a_range_of_its_clause_as_one_step() -> None:
    engine = Engine(FLIGHTS)
    few = " or ".join(f"dest = D{n}" for n in range(5))
    many = " or ".join(f"delay = {n}" for n in range(10))
    engine.subscribe(f"delay >= 2 and delay <= 7 and ({few}) and ({many})", id="x")
    programs = [engine.residuals.steps(slot) for slot in engine.slot_table.slots("x").tolist()]
    assert [len(steps) for steps in programs] == [11] * 5
    assert engine.residuals.nbytes > 0
    engine.check()
    assert engine.match({"delay": [1, 12, 7], "dest": "D4"}) == ["x"]
    assert engine.match({"delay": [1, 8, 12], "dest": "D4"}) == []


def test_residuals_of_a_table_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.engine.clause_placement._STEP", 3)
    texts = [
        f"carrier = C{n} and " + " and ".join(f"(dest != D{m} or gate = G{m})" for m in range(5))
        for n in range(2)
    ]
    engine = Engine(FLIGHTS)
    engine.subscribe_table(pa.table({"id": ["0", "1"], "condition": texts}))
    assert len(engine.residuals) == len(engine.matcher) == 10
    engine.check()
    live = {str(n): parse(text) for n, text in enumerate(texts)}
    for event in (
        {"carrier": "C1", "dest": "D3"},
        {"carrier": "C1", "dest": "D4", "gate": ["G1", "G4"]},
        {"carrier": "C0", "dest": "D9"},
    ):
        right = [id for id, condition in live.items() if satisfies(condition, event, FLIGHTS)]
        assert engine.match(event) == right


@pytest.mark.parametrize("matcher", ["scan", "tamis"])
@pytest.mark.parametrize("seed", range(3))
def test_they_come_and_go_and_are_saved(matcher: str, seed: int, tmp_path: Path) -> None:
    chooser = cases.RandomChooser(seed)
    engine = Engine(cases.SCHEMA, matcher)
    live = tangles(engine, chooser, 25)
    events = [cases.event(chooser) for _ in range(12)]
    agree(engine, live, events)
    bits = engine.match_bitmap(events)
    assert [sorted(bits[at]) for at in range(12)] == [
        sorted(found) for found in engine.match_batch(events)
    ]
    engine.save(tmp_path / "saved")
    for opened in (Engine.open(tmp_path / "saved"), pickle.loads(pickle.dumps(engine))):
        mine = dict(live)
        for id in list(mine)[::2]:
            opened.unsubscribe(id)
            del mine[id]
        mine |= tangles(opened, chooser, 5)
        opened.check()
        agree(opened, mine, events)
    for id in live:
        engine.unsubscribe(id)
    engine.check()
    assert not len(engine.residuals)
    assert all(not len(labels._uses) for labels in engine.encoder.labels.values())


def test_explanations_of_large_conditions_show_the_nearest_branches() -> None:
    engine = Engine(FLIGHTS)
    pairs = " and ".join(f"(dest != D{n} or origin != O{n})" for n in range(9))
    engine.subscribe(pairs, id="x")
    found = engine.explain("x", {"dest": "D3", "origin": "O3"})
    assert not found
    assert found.total == 512
    assert len(found.branches) == 64
    assert "there are 512 branches" in str(found)
    assert sum(not verdict.holds for verdict in found.branches[0].verdicts) == 1


COMPARED = Schema.from_dict(
    {
        "domains": {
            "goods": {"kind": "hierarchy", "tree": {"goods": {"toy": {}, "table": {"desk": {}}}}}
        },
        "attributes": {
            "sold": "decimal",
            "reserve": "integer",
            "seller": "text",
            "buyer": "text",
            "at": "timestamp",
            "due": "timestamp",
            "kind": "goods",
            "wanted": "goods",
            "open": "boolean",
        },
        "event_types": {
            "offer": dict.fromkeys(
                ("sold", "reserve", "seller", "buyer", "at", "due", "kind", "wanted", "open"),
                "optional multiple",
            )
        },
    }
)
CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("sold < @reserve", {"sold": 4.5, "reserve": 5}, True),
    ("sold < @reserve", {"sold": 4.5}, False),
    ("not sold < @reserve", {"sold": 4.5}, False),
    ("not sold < @reserve", {"sold": 5, "reserve": 5}, True),
    ("sold < 2 * @reserve - 1", {"sold": 8.9, "reserve": 5}, True),
    ("sold > 1 / @reserve", {"sold": 8, "reserve": 0}, False),
    ("not sold > 1 / @reserve", {"sold": 8, "reserve": 0}, False),
    ("reserve = @sold", {"sold": 2.0**53, "reserve": 2**53 + 1}, False),
    ("seller = @buyer", {"seller": "ann", "buyer": "ann"}, True),
    ("seller != @buyer", {"seller": "ann", "buyer": "bob"}, True),
    ("at > @due", {"at": "2026-01-01T00:00:00.000001Z", "due": "2026-01-01"}, True),
    ("kind <= @wanted", {"kind": "desk", "wanted": "table"}, True),
    ("not kind <= @wanted", {"kind": "toy", "wanted": "table"}, True),
    ("open = @open", {"open": True}, True),
    ("sold > @reserve and sold < 10", {"sold": [4, 12], "reserve": [5, 3]}, True),
    ("sold > @reserve and sold < 4", {"sold": [3, 12], "reserve": [5, 4]}, False),
    ("@sold - @reserve > 3", {"sold": 9, "reserve": 5}, True),
    ("5 < @sold", {"sold": 6}, True),
]


@pytest.mark.parametrize(("text", "event", "holds"), CASES)
def test_attributes_are_compared(text: str, event: dict[str, Any], holds: bool) -> None:
    assert satisfies(parse(text, COMPARED), event, COMPARED) is holds
    for matcher in ("naive", "scan", "tamis"):
        engine = Engine(COMPARED, matcher)
        engine.subscribe(text, id="x")
        assert engine.match(event) == (["x"] if holds else [])
        assert bool(engine.explain("x", event)) is holds


def test_a_stored_condition_keeps_its_meaning_when_the_schema_gains_an_attribute() -> None:
    schema = Schema.from_dict({"attributes": {"title": "text"}})
    engine = Engine(schema)
    engine.subscribe("title = subtitle", id="before")
    engine.extend(schema.create_attribute("subtitle", "text"))
    assert engine.match({"title": "subtitle"}) == ["before"]
    with pytest.raises(ConditionError, match="is an attribute"):
        engine.subscribe("title = subtitle")
    engine.subscribe("title = subtitle", id="read again", stored=True)
    assert set(engine.match({"title": "subtitle"})) == {"before", "read again"}


def test_negation_of_a_large_or(tmp_path: Path) -> None:
    engine = Engine(FLIGHTS)
    parts = tuple(
        And((Predicate("dest", "=", f"D{n}"), Predicate("gate", "like", f"%{n}")))
        for n in range(12)
    )
    engine.subscribe(Not(Or(parts)), id="x")
    event = {"dest": "D3", "gate": ["A3", "B4"]}
    assert engine.match(event) == (["x"] if satisfies(Not(Or(parts)), event, FLIGHTS) else [])
    assert engine.match({"dest": "D3", "gate": "A3"}) == []
