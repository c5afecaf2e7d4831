"""The redundancy report says what the definition of truth says.

TAMIS_REDUNDANCY is the number of subscriptions to compare with tables of truth.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations, product
from typing import Any

import pyarrow as pa
import pytest

from tamis import Engine, Schema
from tamis.engine.redundancy import cover_search
from tamis.engine.redundancy.collected_clauses import MOMENTS
from tamis.engine.redundancy.find_redundancy import TOO_LONG, of_engine
from tamis.errors import ConditionError, NeverTrueError
from tamis.model.condition import And, Condition, Not, Or, Predicate
from tamis.model.schema import EVENT_TYPE
from tamis.model.semantics import satisfies
from tamis.testing import cases
from tamis.testing.engine_checks import subscribe_random
from tests.campaign import SEED, campaign

NOW = "2026-03-01T10:00:00Z"
COMPARED = int(os.environ.get("TAMIS_REDUNDANCY", "400"))  # subscriptions

RANK = {
    "kind": "enumerated",
    "values": ["low", "left", "right", "top"],
    "order": [["low", "left"], ["low", "right"], ["left", "top"], ["right", "top"]],
}
WOOD = {"kind": "hierarchy", "parents": {"oak": ["wood"], "ply": ["wood", "glued"]}}
# Of each attribute: its domain, constants, and a value for every gap between constants.
MENU: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "n": ("integer", (1, 2), (0, 1, 2, 3)),
    "d": ("decimal", (1, 1.5), (0.5, 1, 1.25, 1.5, 2)),
    "t": ("text", ("a", "a\0", "b"), ("", "a", "a\0", "aa", "b", "c")),
    "f": ("boolean", (True, False), (True, False)),
    "r": (RANK, ("low", "left", "right", "top"), ("low", "left", "right", "top")),
    "w": (WOOD, ("oak", "ply", "wood", "glued"), ("oak", "ply", "wood", "glued")),
    "s": ({"kind": "integer", "low": 0, "high": 2}, (0, 1, 2), (0, 1, 2)),
    "x": ("dynamic", (1, "a", True), (None, False, True, 0, 1, 2, "", "a", "b", {})),
}
SET = ("contains", "excludes", "subset of", "superset of")


def schema(draw: random.Random, names: list[str]) -> Schema:
    kinds = ("mandatory", "optional", "optional", "optional multiple", "mandatory multiple")
    types = {
        kind: {name: draw.choice(kinds) for name in names if draw.random() < 0.7}
        for kind in ("k1", "k2", "k3")[: draw.choice((1, 1, 2, 3))]
    }
    for name in names:
        types["k1"].setdefault(name, draw.choice(kinds))
    attributes = {name: MENU[name][0] for name in names}
    return Schema.from_dict({"attributes": attributes, "event_types": types})


def events(of: Schema) -> Iterator[dict[str, Any]]:
    """Every event that conditions can tell apart, with at most three values of an attribute."""
    for size in range(1, len(of.event_types) + 1):
        for types in combinations(of.event_types, size):
            view = of.view(types)
            choices = []
            for name, use in view.items():
                values = MENU[name][2]
                most = 3 if use.multiple else 1
                sets = [list(s) for many in range(1, most + 1) for s in combinations(values, many)]
                choices.append([(name, each) for each in ([] if use.mandatory else [None]) + sets])
            for chosen in product(*choices):
                bound = {name: value for name, value in chosen if value is not None}
                yield {EVENT_TYPE: list(types), **bound}


def predicate(draw: random.Random, of: Schema, names: list[str]) -> Predicate:
    name = draw.choice([*names, *names, EVENT_TYPE])
    if name == EVENT_TYPE:
        pool: tuple[Any, ...] = tuple(of.event_types)
        comparators = ["=", "!=", "in", "contains", "excludes", "subset of"]
    else:
        pool = MENU[name][1]
        comparators = ["=", "!=", "in", *SET, "exists", "missing", "is null", "is scalar"]
        if name != "f":
            comparators += ["<", "<=", ">", ">=", "between"] * (name != "x")
    comparator = draw.choice(comparators)
    if comparator in ("exists", "missing", "is null", "is scalar"):
        return Predicate(name, comparator)
    if comparator in ("in", "subset of", "superset of"):
        return Predicate(
            name, comparator, tuple(draw.sample(pool, draw.randint(1, min(2, len(pool)))))
        )
    if comparator == "between":
        return Predicate(name, comparator, (draw.choice(pool), draw.choice(pool)))
    return Predicate(name, comparator, draw.choice(pool))


def condition(draw: random.Random, of: Schema, names: list[str], depth: int = 2) -> Condition:
    shape = draw.choice(("leaf", "and", "and", "or", "not")) if depth else "leaf"
    if shape == "leaf":
        return predicate(draw, of, names)
    if shape == "not":
        return Not(condition(draw, of, names, depth - 1))
    parts = tuple(condition(draw, of, names, depth - 1) for _ in range(draw.choice((2, 2, 3))))
    return And(parts) if shape == "and" else Or(parts)


def check(seed: int) -> int:
    """Compare a report with a table of truth; how many subscriptions that was."""
    draw = random.Random(seed)
    names = draw.sample(sorted(MENU), draw.choice((1, 2, 2, 3)))
    of = schema(draw, names)
    every = [of.event(event) for event in events(of)]
    if len(every) > 400:
        every_mask_is_exact = False
        every = draw.sample(every, 400)
    else:
        every_mask_is_exact = True
    engine = Engine(of, "scan")
    truth: dict[int | str, int] = {}
    for number in range(24):
        made = condition(draw, of, names)
        try:
            if any(each.residual for each in engine.compile(made).clauses):
                continue  # an 'and' of many 'or's is not decided
            id = engine.subscribe(made, number)
        except ConditionError:
            continue
        truth[id] = sum(satisfies(made, event, of) << at for at, event in enumerate(every))
    report = of_engine(engine, None)
    whole = (1 << len(every)) - 1

    def show(*ids: Any) -> str:
        return f"seed {seed} {of.to_dict()} {[engine.condition(id) for id in ids]}"

    assert not report.undecided, show() + str(report.undecided)
    for id in report.never_true:
        assert truth[id] == 0, "not never true: " + show(id)
    for id in report.always_true:
        assert truth[id] == whole, "not always true: " + show(id)
    for group in report.duplicates:
        assert len({truth[id] for id in group}) == 1, "not duplicates: " + show(*group)
    for id, by in report.covered:
        assert truth[id] & ~truth[by] == 0, "not covered: " + show(id, by)
    if not every_mask_is_exact:
        return len(truth)
    group_of = {id: at for at, group in enumerate(report.duplicates) for id in group}
    covered = {each.id for each in report.covered}
    for id, mask in truth.items():
        assert (mask == 0) == (id in report.never_true), "never true: " + show(id)
        assert (mask == whole) == (id in report.always_true), "always true: " + show(id)
    usual = [id for id, mask in truth.items() if mask not in (0, whole)]
    for one, other in combinations(usual, 2):
        alike = group_of.get(one, -1) == group_of.get(other, -2)
        assert (truth[one] == truth[other]) == alike, "duplicates: " + show(one, other)
    for id in usual:
        around = [by for by in usual if truth[id] != truth[by] and not truth[id] & ~truth[by]]
        assert bool(around) == (id in covered), "covered: " + show(id, *around[:1])
    return len(truth)


@pytest.mark.slow
def test_reports_agree_with_tables_of_truth() -> None:
    with campaign("redundancy") as running:
        while running.tried < COMPARED:
            running.tried += check(running.draw.randrange(1 << 40))


@pytest.mark.slow
@pytest.mark.parametrize("of", [cases.SCHEMA, cases.OPEN], ids=["typed", "open"])
def test_what_is_listed_is_true_whatever_conditions_have(of: Schema) -> None:
    """All constructs: claims are compared with events, and what is open has a reason."""
    chooser = cases.RandomChooser(f"redundancy {SEED}")
    engine = Engine(of, "scan")
    conditions = subscribe_random(engine, chooser, 60)
    for id, condition in list(conditions.items())[:20]:
        more = cases.predicate(chooser, of)
        for made in (Not(Not(condition)), Or((more, condition)), And((condition, more))):
            with suppress(NeverTrueError):
                conditions[int(engine.subscribe(made))] = made
        assert engine.condition(id)
    report = of_engine(engine, None)
    assert report.covered
    assert report.duplicates
    assert report.undecided
    draw = cases.open_event if of.is_open else cases.event
    for event in [engine.schema.event(draw(chooser)) for _ in range(25)]:
        matched = {
            id for id, c in conditions.items() if satisfies(c, event, engine.schema, now=NOW)
        }
        assert not matched & {*report.never_true}
        assert matched >= {*report.always_true}
        for group in report.duplicates:
            assert matched.isdisjoint(group) or matched.issuperset(group), group
        for inner, by in report.covered:
            assert inner not in matched or by in matched, (inner, by)


def test_tests_of_text_are_compared_on_the_same_value() -> None:
    of = Schema.from_dict({"attributes": {"tags": "text", "title": "text", "other": "text"},
                           "event_types": {"e": {"tags": "optional multiple", "title": "optional",
                                                 "other": "optional"}}})  # fmt: skip
    engine = Engine(of)
    engine.subscribe('tags like "%b" and tags contains a', id="two values may do")
    engine.subscribe('tags like "%b" and tags < aa', id="one value must do")
    engine.subscribe('tags like "%b" and tags < a', id="less")
    engine.subscribe('title like "%x" and other like "%x"', id="one")
    engine.subscribe('other like "%x"', id="b")
    engine.subscribe('title like "%x"', id="a")
    engine.subscribe('other like "%x" and title like "%x"', id="other")
    report = engine.redundancy()
    assert ("less", "one value must do") in report.covered
    assert {each.id for each in report.covered} == {"less", "one", "other"}
    assert report.duplicates == [["one", "other"]]
    (undecided,) = report.undecided.values()
    assert len(undecided) == 7


def test_times_relative_to_now_are_not_decided() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"at": "timestamp", "n": "integer"}}))
    for id, text in {
        "recent": "at > now - 1h",
        "later": "at > now",
        "again": "at > now",
        "bound": "at exists",
        "never": "at < now and n missing and n > 5 or at > now + 1d and n = 1",
    }.items():
        engine.subscribe(text, id=id)
    report = engine.redundancy()
    assert report.duplicates == [["later", "again"]]
    assert {each.id: each.by for each in report.covered} == dict.fromkeys(
        ("recent", "later", "again", "never"), "bound"
    )
    assert report.undecided[MOMENTS] == ["recent", "later", "again", "never"]


def test_a_domain_that_grew_is_reported_as_it_is_now() -> None:
    of = Schema.from_dict({"domains": {"size": {"kind": "enumerated", "values": ["s", "m"]}},
                           "attributes": {"size": "size"}})  # fmt: skip
    engine = Engine(of)
    engine.subscribe("size exists", id="any")
    engine.subscribe("size = s or not size = s", id="every")
    engine.subscribe("size in (s, m)", id="both")
    assert engine.redundancy().duplicates == [["any", "every", "both"]]
    engine.extend(of.grow_domain("size", ["l"]))
    report = engine.redundancy()
    assert [sorted(map(str, group)) for group in report.duplicates] == [["any", "every"]]
    assert [each.id for each in report.covered] == ["both"]


def test_an_engine_does_not_change_and_an_empty_one_has_a_report() -> None:
    engine = Engine(Schema.from_dict({"attributes": {"price": "decimal", "title": "text"}}))
    assert engine.redundancy().redundant == 0
    table = pa.table({"id": [1, 2, 3], "condition": ["price < 5", "title = a", "price < 4"]})
    engine.subscribe_table(table)
    seen: list[str] = []
    report = engine.redundancy(lambda what, done, total: seen.append(what))
    assert report.covered == [(3, 1)]
    assert seen
    engine.check()
    assert engine.match({"price": 3, "title": "a"}) == [1, 2, 3]


def test_a_long_search_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover_search, "_STEPS", 1)
    engine = Engine(Schema.from_dict({"attributes": {"n": "integer"}}))
    engine.subscribe("n between 1 and 10", id="inner")
    engine.subscribe("n < 5 or n >= 5 and n < 100", id="outer")
    report = engine.redundancy()
    assert not report.covered
    assert "inner" in report.undecided[TOO_LONG]
