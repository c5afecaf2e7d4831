"""Why operators and constraints hold, or do not, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tamis import parse
from tamis.errors import ConditionError
from tamis.model.explain import explain
from tamis.model.operator import Rows, Signature
from tamis.model.semantics import satisfies
from tests.unit.model.test_operator_semantics import CASES, SCHEMA, TABLE, free

EXPLAINED: list[tuple[str, Mapping[str, Any], list[str]]] = [
    ("yes()", {}, ["matches", "  yes  yes(): the operator says true"]),
    ("not yes()", {}, ["does not match", "  no   not yes(): the operator says true"]),
    ("no()", {}, ["does not match", "  no   no(): the operator says false"]),
    (
        "people(?n) and ?n > 50",
        {},
        [
            "matches",
            "  yes  people(?n): the operator gives 30, 60",
            "  yes  ?n > 50: ?n is 30, 60",
        ],
    ),
    (
        "people(?n) and ?n > 70",
        {},
        [
            "does not match",
            "  yes  people(?n): the operator gives 30, 60",
            "  no   ?n > 70: ?n is 30, 60",
        ],
    ),
    (
        "people(?n) and ?n < 40 and ?n > 50",
        {},
        [
            "does not match",
            "  yes  people(?n): the operator gives 30, 60",
            "  yes  ?n < 40: ?n is 30, 60",
            "  yes  ?n > 50: ?n is 30, 60",
            "  no   no one substitution of ?n satisfies all of them",
        ],
    ),
    (
        "people(?n) and cars(?m) and pairs(?n, ?m)",
        {},
        [
            "does not match",
            "  yes  people(?n): the operator gives 30, 60",
            "  yes  cars(?m): the operator gives 60, 90",
            "  yes  pairs(?n, ?m): the operator gives (1, 2), (2, 2), (3, 4)",
            "  no   no one substitution of ?n and ?m satisfies all of them",
        ],
    ),
    (
        "people(?n) and not cars(?n)",
        {},
        [
            "matches",
            "  yes  people(?n): the operator gives 30, 60",
            "  yes  not cars(?n): the operator gives 60, 90",
        ],
    ),
    (
        "people(61)",
        {},
        ["does not match", "  no   people(61): the operator gives 30, 60"],
    ),
    (
        "nothing(?n) and ?n * ?n > 5",
        {},
        [
            "does not match",
            "  no   nothing(?n): the operator gives nothing",
            "  no   ?n * ?n > 5: no call gives ?n a value",
        ],
    ),
    (
        "not broken() or yes()",
        {},
        [
            "matches",
            "branch 1 of 2 fails",
            "  no   not broken(): the operator failed: timeout: it hangs",
            "branch 2 of 2 holds",
            "  yes  yes(): the operator says true",
        ],
    ),
    (
        "times(?t, ?s) and price < 5",
        {"tags": "a", "price": 3},
        [
            "does not match",
            "  no   times(?t, ?s): the operator reads sizes, which the event does not bind",
            "  yes  price < 5: price is 3.0",
        ],
    ),
    (
        "times(?t, 1)",
        {},
        [
            "does not match",
            "  no   times(?t, 1): the operator reads tags and sizes, which the event does not bind",
        ],
    ),
    (
        "truth(?t) and times(?u, ?s) and ?t = true and ?s >= 1",
        {"tags": ["ab", "c"], "sizes": [1, 2]},
        [
            "matches",
            "  yes  truth(?t): the operator gives true",
            "  yes  times(?u, ?s): the operator gives (ab, 1), (abab, 2), (c, 1), (cc, 2)",
            "  yes  ?t = true: ?t is true",
            "  yes  ?s >= 1: ?s is 1, 2",
        ],
    ),
]


@pytest.mark.parametrize(("text", "event", "lines"), EXPLAINED)
def test_explanations_read(text: str, event: Mapping[str, Any], lines: list[str]) -> None:
    assert str(explain(parse(text), event, SCHEMA, TABLE)).split("\n") == lines


@pytest.mark.parametrize(("text", "event", "truth"), CASES)
def test_explanations_say_what_is_so(text: str, event: dict[str, Any], truth: bool) -> None:
    found = explain(parse(text), event, SCHEMA, TABLE)
    assert found.holds is truth
    for branch in found.branches:
        # Where a branch fails, something is named that fails.
        assert branch.holds == (all(v.holds for v in branch.verdicts) and not branch.conflicts)


def test_rows_are_kept_for_programs_and_what_cannot_be_asked_is_refused() -> None:
    verdict = explain(parse("pairs(?a, ?b)"), {}, SCHEMA, TABLE).branches[0].verdicts[0]
    assert verdict.values == ((1, 2), (2, 2), (3, 4))
    with pytest.raises(ConditionError, match="unknown operator 'locIn'"):
        explain(parse("locIn(Bronx)"), {}, SCHEMA)
    with pytest.raises(ConditionError, match="nothing binds"):
        explain(parse("?n > 5"), {}, SCHEMA, TABLE)


def test_each_call_is_made_once() -> None:
    made: list[tuple[Any, ...]] = []

    def spy(values: tuple[Any, ...], given: tuple[Any, ...]) -> Rows:
        made.append(given)
        return ((1,), (2,))

    operators = {"spy": (Signature("spy", free("n"), ()), spy)}
    condition = parse("spy(?n) and (?n = 1 or ?n = 2 or not spy(3))")
    assert explain(condition, {}, SCHEMA, operators)
    assert made == [(None,), (3,)]
    assert satisfies(condition, {}, SCHEMA, operators)


def test_long_answers_are_cut() -> None:
    many: Rows = tuple((number,) for number in range(5000))
    operators = {"many": (Signature("many", free("n"), ()), lambda values, given: many)}
    shown = str(explain(parse("many(?n) and ?n > 10"), {}, SCHEMA, operators))
    assert "(5000 values)" in shown
    assert len(shown) < 400


SOME: Rows = tuple((number,) for number in range(300))
JOINS = {name: (Signature(name, free("n"), ()), lambda values, given: SOME) for name in "fgh"}


def test_too_many_substitutions_are_given_up_and_that_is_said() -> None:
    condition = parse("f(?a) and g(?b) and h(?c) and ?a > 200 and ?a + ?b + ?c = 1000")
    found = explain(condition, {}, SCHEMA, JOINS)
    (branch,) = found.branches
    assert not found.holds
    assert branch.given_up
    assert [(each.holds, each.given_up) for each in branch.verdicts] == [(True, False)] * 4 + [
        (False, True)
    ]
    *_, last, conflict = str(found).split("\n")
    assert last.startswith("  ?    ?a + ?b + ?c = 1000: ?a is 0, ")
    assert last.endswith("; given up: too many of them to try")
    assert conflict == "  no   given up: too many substitutions of ?a, ?b and ?c to try"


def test_calls_that_nothing_joins_are_given_up_before_one_substitution_is_found() -> None:
    """No row of h fits, and between two substitutions all pairs of the others are gone through."""
    operators = {**JOINS, "h": (JOINS["h"][0], lambda values, given: ((-1,),))}
    condition = parse("f(?a) and g(?b) and h(?a) and not f(?b) and ?a < ?b")
    (branch,) = explain(condition, {}, SCHEMA, operators).branches
    assert branch.given_up
    assert any("given up: too many rows to find values" in each.reason for each in branch.verdicts)


@pytest.mark.slow
def test_one_answer_is_gone_through_however_long_it_is() -> None:
    many: Rows = tuple((number,) for number in range(300_000))
    operators = {"many": (Signature("many", free("n"), ()), lambda values, given: many)}
    assert explain(parse("many(?n) and ?n > 299998"), {}, SCHEMA, operators)
    assert (
        not explain(parse("many(?n) and ?n > 299999"), {}, SCHEMA, operators).branches[0].given_up
    )


@pytest.mark.parametrize("fit", [True, None])
def test_whoever_matched_decides_whether_one_substitution_fits(fit: bool | None) -> None:
    condition = parse("f(?a) and g(?b) and h(?c) and not f(?a) and ?a + ?b + ?c = 1000")
    found = explain(condition, {}, SCHEMA, JOINS, lambda *clause: fit)
    (branch,) = found.branches
    assert found.holds == branch.holds == bool(fit)
    assert branch.given_up == (fit is None)
    if fit:
        assert all(each.holds and not each.given_up for each in branch.verdicts)
        assert not branch.conflicts
