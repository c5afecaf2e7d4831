"""Which of many predicates the rows of one call make true, against asking each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.engine.calls import call_group as sharing
from tamis.engine.calls.call_group import CallGroup
from tamis.engine.calls.clause_calls import CallPredicate, collect_calls, variable_names
from tamis.language import parse
from tamis.model.condition import (
    Arithmetic,
    Call,
    Expression,
    Literal,
    ValueConstraint,
    Variable,
    parts_of,
)
from tamis.model.operator import Parameter, Signature
from tamis.model.semantics import branches

SIGNATURE = Signature(
    "seen",
    (Parameter("of", "text", False), *(Parameter(name, "any", True) for name in ("m", "n"))),
    (),
)
LARGE = 2**53  # the doubles around it are 2 apart above and 1 below
VALUES: tuple[Any, ...] = (
    *(0, 1, 2, 2.5, -0.0, 0.1, 5e-324, -5e-324, 1.7976931348623157e308),
    *(LARGE, LARGE + 1, LARGE + 2, float(LARGE), -LARGE - 1, 2**63 - 1, -(2**63)),
    *("", "x", "y", "1", True, False),
)
CONSTANTS = st.sampled_from((*VALUES, 10**400))
COMPARATORS = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
SMALL = st.sampled_from((0, 1, 2))
ROWS = st.one_of(
    *(
        st.lists(st.tuples(values, values), max_size=4).map(tuple)
        for values in (st.sampled_from(VALUES), SMALL)
    )
)


@st.composite
def constraints(draw: st.DrawFn, names: list[str]) -> Literal[ValueConstraint]:
    left: Expression = Variable(draw(st.sampled_from(names)))
    right: Expression = draw(CONSTANTS)
    if draw(st.integers(0, 9)) == 0:
        right = Arithmetic(draw(st.sampled_from("+-*/")), right, draw(CONSTANTS))
    if draw(st.integers(0, 9)) == 0:
        right = Variable(draw(st.sampled_from(names)))
    if draw(st.booleans()):
        left, right = right, left
    return Literal(ValueConstraint(left, draw(COMPARATORS), right), draw(st.booleans()))


@st.composite
def predicates(draw: st.DrawFn) -> CallPredicate:
    variable = st.sampled_from((Variable("a"), Variable("b")))
    arguments = tuple(draw(variable if draw(st.integers(0, 2)) else CONSTANTS) for _ in range(2))
    names = [each.name for each in arguments if isinstance(each, Variable)]
    limits = draw(st.lists(constraints(names), max_size=3)) if names else []
    asked = collect_calls([Literal(Call("seen", ("here", *arguments)), True)], limits)
    assert asked is not None
    return asked.calls[0].predicate


@st.composite
def alike(draw: st.DrawFn) -> CallPredicate:
    """Of few groups with many members, so that these change places, and limits that meet."""
    name = st.sampled_from("ab" if draw(st.booleans()) else "a")
    limits = [
        Literal(ValueConstraint(Variable(draw(name)), draw(COMPARATORS), draw(SMALL)), True)
        for _ in range(draw(st.integers(0, 3)))
    ]
    used = {each for limit in limits for each in variable_names(limit.predicate)}
    other: Variable | int = Variable("b" if "b" in used else "a")
    if "b" not in used and draw(st.booleans()):
        other = 1
    asked = collect_calls([Literal(Call("seen", ("here", Variable("a"), other)), True)], limits)
    assert asked is not None
    return asked.calls[0].predicate


def _answer(of: CallGroup, rows: Any, numbers: list[int]) -> dict[int, bool]:
    holding = of.answer(rows, np.array(numbers, np.int64))
    return dict(zip(numbers, holding.tolist(), strict=True))


@pytest.fixture(scope="module", params=[0, 3, 100])
def few(request: pytest.FixtureRequest) -> Any:
    """Grouped at once, after some time, and never."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sharing, "_FEW", request.param)
        yield


@pytest.mark.usefixtures("few")
@settings(max_examples=200)
@given(data=st.data(), made=st.sampled_from((predicates(), alike())))
@pytest.mark.slow
def test_all_at_once_is_one_by_one_while_they_come_and_go(
    data: st.DataObject, made: st.SearchStrategy[CallPredicate]
) -> None:
    shared = CallGroup(SIGNATURE)
    live: dict[int, CallPredicate] = {}
    for _ in range(data.draw(st.integers(1, 6))):
        for predicate in data.draw(st.lists(made, max_size=12)):
            number = min(set(range(len(live) + 1)) - set(live))
            live[number] = predicate
            shared.add(number, predicate)
        for number in (
            data.draw(st.lists(st.sampled_from(sorted(live)), unique=True)) if live else ()
        ):
            shared.remove(number)
            del live[number]
        rows = data.draw(ROWS)
        assert set(shared.numbers) == set(live)
        some = data.draw(st.lists(st.sampled_from(sorted(live)), unique=True)) if live else []
        for numbers in (list(live), some):
            assert _answer(shared, rows, numbers) == {
                number: bool(live[number].bindings(SIGNATURE, rows)) for number in numbers
            }
        for predicate in live.values():
            assert predicate.holds(SIGNATURE, rows) == bool(predicate.bindings(SIGNATURE, rows))


def _predicate(text: str) -> CallPredicate:
    (clause,) = branches(parse(text))
    _, calls, constraints, *_ = parts_of(clause)
    asked = collect_calls(calls, constraints)
    assert asked is not None
    return asked.calls[0].predicate


def _shared(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[CallGroup, list[int]]:
    """The predicates, and a list of those that are asked one by one from now on."""
    shared = CallGroup(SIGNATURE)
    for number, text in enumerate(texts):
        shared.add(number, _predicate(text))
    alone: list[int] = []
    real = CallPredicate.holds

    def counted(self: CallPredicate, *given: Any) -> Any:
        alone.append(1)
        return real(self, *given)

    monkeypatch.setattr(CallPredicate, "holds", counted)
    return shared, alone


@pytest.mark.parametrize(
    ("form", "holding"),
    [
        ("seen(here, ?n, ?m) and ?n > {}", 70),
        ("seen(here, ?n, ?m) and ?n <= {}", 1000 - 3),
        ("seen(here, ?n, x) and {} < ?n and ?n < {} + 0.5", 0),
        ("seen(here, ?n, x) and {} <= ?n and ?n < {} + 0.5", 2),
        ("seen(here, ?n, ?m) and ?n = {}", 2),
        ("seen(here, {}, ?m)", 2),
        ("seen(here, ?n, ?m) and not ?n < {} and ?m = x", 71),
        ("seen(here, ?n, ?m) and ?n > {} and ?m > {}", 0),
        ("seen(here, ?n, ?n) and ?n > {}", 0),
        ('seen(here, ?n, ?m) and ?m = "{}"', 0),
    ],
)
def test_a_thousand_that_differ_in_a_constant_are_not_asked_one_by_one(
    form: str, holding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, alone = _shared([form.replace("{}", str(at)) for at in range(1000)], monkeypatch)
    nonempty = shared.answer(((3, "x"), (70, "x")), np.arange(1000))
    assert nonempty.sum() == holding
    assert not alone


def test_where_doubles_cannot_tell_each_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"seen(here, ?n, ?m) and ?n > {LARGE + at}" for at in range(-20, 20)]
    shared, alone = _shared(texts, monkeypatch)
    nonempty = shared.answer(((LARGE + 1, 0),), np.arange(40))
    assert nonempty.tolist() == [at < 1 for at in range(-20, 20)]
    assert alone


def test_of_what_doubles_cannot_tell_only_what_was_asked_for_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [f"seen(here, ?n, ?m) and ?n > {LARGE + at}" for at in range(-20, 20)]
    shared, alone = _shared(texts, monkeypatch)
    numbers = np.arange(2, 40, 2)
    nonempty = shared.answer(((LARGE + 1, 0),), numbers)
    assert nonempty.tolist() == [at - 20 < 1 for at in numbers.tolist()]
    assert len(alone) == len(numbers)


def test_of_very_many_a_few_are_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, alone = _shared(
        [f"seen(here, ?n, ?m) and ?n > {at}" for at in range(5000)], monkeypatch
    )
    assert shared.answer(((7, "x"),), np.arange(30)).sum() == 7
    assert len(alone) == 30, "5,000 comparisons at once would take longer"
    assert shared._groups is None


def test_room_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    shared, _ = _shared([f"seen(here, ?n, ?m) and ?n > {at}" for at in range(count)], monkeypatch)
    every = np.arange(count)
    shared.answer(((7, "x"),), every)
    assert shared._groups is not None
    ((group,),) = (by_key.values() for by_key in shared._groups._by_shape.values())
    assert len(group._number) >= count
    for number in range(count - 20):
        shared.remove(number)
    assert len(group._number) <= 80
    assert shared.answer(((990, "x"),), every[-20:]).tolist() == [
        at < 990 for at in range(980, 1000)
    ]
    for number in range(count - 20, count - 1):
        shared.remove(number)
    assert len(group._number) == sharing._ROOM
