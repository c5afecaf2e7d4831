"""What a function returned becomes rows, or a fault that says what was wrong with it."""

from __future__ import annotations

import enum
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.model.operator import KINDS, Fault, Rows
from tamis.operators import operator
from tamis.operators.results import MOST, answers, rows


class Colour(enum.IntEnum):
    RED = 1


class Pair(NamedTuple):
    a: int
    b: str


class Endless(list[int]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")


class Mute(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no")


UNDERSTOOD: list[tuple[Any, tuple[str, ...], Rows]] = [
    (True, (), ((),)),
    (np.True_, (), ((),)),
    (False, (), ()),
    (np.False_, (), ()),
    (None, (), ()),
    ([], (), ()),
    (None, ("number",), ()),
    (False, ("number",), ()),
    (False, ("boolean",), ()),
    ([], ("number",), ()),
    ([], ("number", "text"), ()),
    (0, ("number",), ((0,),)),
    (-0.0, ("number",), ((0.0,),)),
    ("", ("text",), (("",),)),
    ("é\U0001f600", ("text",), (("é\U0001f600",),)),
    (True, ("boolean",), ((True,),)),
    ([False], ("boolean",), ((False,),)),
    ([3, 4, 3], ("number",), ((3,), (4,))),
    ([1, True, 1.0, "1"], ("any",), ((1,), (True,), ("1",))),
    ((1, "x"), ("number", "text"), ((1, "x"),)),
    (Pair(1, "x"), ("number", "text"), ((1, "x"),)),
    ([(1, "x"), (2, "y"), (1, "x")], ("number", "text"), ((1, "x"), (2, "y"))),
    (np.int8(-3), ("number",), ((-3,),)),
    (np.uint64(3), ("number",), ((3,),)),
    (np.float32(0.5), ("number",), ((0.5,),)),
    (np.float64(0.5), ("any",), ((0.5,),)),
    (np.longdouble(0.5), ("number",), ((0.5,),)),
    (np.str_("x"), ("text",), (("x",),)),
    ([np.True_], ("boolean",), ((True,),)),
    (Colour.RED, ("number",), ((1,),)),
    (2**63 - 1, ("number",), ((2**63 - 1,),)),
]


@pytest.mark.parametrize(("returned", "kinds", "right"), UNDERSTOOD)
def test_understood(returned: Any, kinds: tuple[str, ...], right: Rows) -> None:
    found = rows(returned, kinds)
    assert found == right
    assert isinstance(found, tuple)
    plain = {bool, int, float, str}
    assert {type(value) for row in found for value in row} <= plain
    assert [list(map(type, row)) for row in found] == [
        [type(value) for value in row] for row in right
    ]
    assert "-0" not in repr(found).replace("-3", "")


NONSENSE: list[tuple[Any, tuple[str, ...], str]] = [
    (1, (), "1 is neither True nor False"),
    ("yes", (), "neither True nor False"),
    ([True], (), "neither True nor False"),
    ((), (), "neither True nor False"),
    (np.array(True), (), "neither True nor False"),
    (True, ("number",), "True is not a number"),
    (True, ("text",), "True is not a text"),
    (0, ("boolean",), "0 is not a boolean"),
    ("1", ("number",), "'1' is not a number"),
    (1, ("text",), "1 is not a text"),
    (b"x", ("text",), "is not a text"),
    (math.nan, ("number",), "nan is not a finite number"),
    (-math.inf, ("any",), "-inf is not a finite number"),
    (np.float32("inf"), ("number",), "inf is not a finite number"),
    (2**63, ("number",), "does not fit 64 bits"),
    ([10**10_000], ("number",), "does not fit 64 bits"),
    (1 + 2j, ("number",), "is not a number"),
    (Fraction(1, 2), ("number",), "is not a number"),
    (np.complex64(1), ("any",), "is not a number, text or boolean"),
    (np.timedelta64(3, "s"), ("number",), "is not a number"),
    ("\ud800", ("text",), "lone surrogate"),
    ([None], ("any",), "None is not a number, text or boolean"),
    ((1,), ("number",), "(1,) is not a number"),
    ([(1,)], ("number",), "(1,) is not a number"),
    ([[1]], ("number",), "[1] is not a number"),
    (np.array([1]), ("number",), "is not a number"),
    ({1}, ("number",), "is not a number"),
    (1, ("number", "text"), "1 is not a tuple of 2 values"),
    (True, ("number", "text"), "True is not a tuple of 2 values"),
    ((), ("number", "text"), "() is not a tuple of 2 values"),
    ((1, "x", 3), ("number", "text"), "is not a tuple of 2 values"),
    ([1, "x"], ("number", "text"), "1 is not a tuple of 2 values"),
    ([[1, "x"]], ("number", "text"), "is not a tuple of 2 values"),
    ([(1, "x"), None], ("number", "text"), "None is not a tuple"),
    (("x", 1), ("number", "text"), "'x' is not a number"),
    (lambda: 1, ("any",), "is not a number, text or boolean"),
    (Endless([1]), ("number",), "cannot be read: RuntimeError: no"),
]


@pytest.mark.parametrize(("returned", "kinds", "why"), NONSENSE)
def test_nonsense(returned: Any, kinds: tuple[str, ...], why: str) -> None:
    found = rows(returned, kinds)
    assert isinstance(found, Fault)
    assert found.kind == "nonsense"
    assert found.reason.startswith("nonsense: ")
    assert why in found.reason


@pytest.mark.parametrize("kinds", [("number",), ("any",), ("number", "text")])
def test_too_many_rows(kinds: tuple[str, ...]) -> None:
    def made(n: int) -> list[Any]:
        return [each if len(kinds) == 1 else (each, "x") for each in range(n)]

    assert len(rows(made(MOST), kinds)) == MOST  # type: ignore[arg-type]
    assert rows(made(MOST + 1), kinds) == Fault("nonsense: more than 100,000 rows", "nonsense")


def test_a_list_without_end_is_not_read_to_its_end() -> None:
    class Counting(list[int]):
        def __iter__(self) -> Any:
            return itertools.count()

    for endless in (Counting([1]), [0] * 10_000_000):
        assert rows(endless, ("number",)) == Fault("nonsense: more than 100,000 rows", "nonsense")


def test_what_is_shown_is_short() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise ValueError

    long, loud = rows("x" * 10_000, ("number",)), rows(Loud(), ("number",))
    assert isinstance(long, Fault)
    assert len(long.reason) < 400
    assert isinstance(loud, Fault)
    assert "a Loud is not a number" in loud.reason


values = {
    "number": st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    "boolean": st.booleans(),
}
values["any"] = st.one_of(*values.values())


@st.composite
def relations(draw: st.DrawFn) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)))
    return kinds, draw(st.lists(st.tuples(*(values[kind] for kind in kinds)), max_size=5))


def _tagged(found: Any) -> set[Any]:
    return {tuple((isinstance(value, bool), value) for value in row) for row in found}


@given(relations())
def test_a_relation_comes_back_as_it_was_meant(
    made: tuple[tuple[str, ...], list[tuple[Any, ...]]],
) -> None:
    kinds, meant = made
    found = rows([row[0] for row in meant] if len(kinds) == 1 else list(meant), kinds)
    assert isinstance(found, tuple)
    assert _tagged(found) == _tagged(meant)
    assert len(found) == len(_tagged(meant))
    again = rows([row[0] for row in found] if len(kinds) == 1 else list(found), kinds)
    assert again == found
    if len(meant) == 1 and meant[0] != (False,):
        assert rows(meant[0][0] if len(kinds) == 1 else meant[0], kinds) == found


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(anything, st.lists(st.sampled_from(KINDS), max_size=3))
def test_whatever_comes_is_rows_of_the_kinds_or_a_fault(returned: Any, kinds: list[str]) -> None:
    types = {"number": (int, float), "text": (str,), "boolean": (bool,)}
    found = rows(returned, tuple(kinds))
    if isinstance(found, Fault):
        assert found.kind == "nonsense"
        return
    for row in found:
        assert len(row) == len(kinds)
        for value, kind in zip(row, kinds, strict=True):
            allowed = types.get(kind, (int, float, str, bool))
            assert type(value) in allowed
            assert not isinstance(value, float) or math.isfinite(value)


def test_one_event_and_a_batch_of_them() -> None:
    @operator(reads=("a.b", "c"), arguments={"k": "number"}, gives={"x": "any"})
    def sum_of(a_b: int, c: int, k: int) -> int:
        return a_b + c + k

    @operator(reads=("a", "b"), arguments={"k": "number"}, gives={"x": "number"}, batch=True)
    def sums(a: list[int], b: list[int], k: int) -> list[Any]:
        assert type(a) is type(b) is list
        return ["?" if x == 9 else [x + y + k, 0] for x, y in zip(a, b, strict=True)]

    assert answers(sum_of, [(1, 2)], {"k": 3}) == [((6,),)]
    found = answers(sums, [(1, 2), (9, 9), (3, 4)], {"k": 1})
    assert isinstance(found, list)
    assert found[0] == ((4,), (0,))
    assert isinstance(found[1], Fault)
    assert found[2] == ((8,), (0,))


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ([True], "1 result for a batch of 2 events"),
        ([True, True, True], "3 results for a batch of 2 events"),
        (None, "None is not a list"),
        (True, "True is not a list"),
        ((True, True), "is not a list"),
        (np.array([True, True]), "is not a list"),
        (Endless([1, 2]), "cannot be read"),
    ],
)
def test_a_batch_that_makes_no_sense(returned: Any, why: str) -> None:
    @operator(reads=("a",), batch=True)
    def odd(a: list[int]) -> Any:
        return returned

    fault = answers(odd, [(1,), (2,)], {})
    assert isinstance(fault, Fault)
    assert fault.kind == "nonsense"
    assert why in fault.reason


def test_a_batch_may_return_what_it_would_raise_for_one() -> None:
    @operator(reads=("a",), batch=True)
    def some(a: list[int]) -> list[Any]:
        return [ValueError("odd") if each % 2 else True for each in a]

    assert answers(some, [(0,), (1,)], {}) == [((),), Fault("raised: ValueError: odd", "raised")]
    assert isinstance(rows(ValueError("odd"), ()), Fault)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad\n  thing"), "raised: ValueError: bad thing"),
        (ZeroDivisionError(), "raised: ZeroDivisionError"),
        (SystemExit(3), "raised: SystemExit: 3"),
        (GeneratorExit(), "raised: GeneratorExit"),
        (Mute(), "raised: Mute"),
        (KeyboardInterrupt(), None),  # the keyboard passes
    ],
)
def test_raised(error: BaseException, reason: str | None) -> None:
    @operator(reads=("a",))
    def bad(a: int) -> bool:
        raise error

    if reason is None:
        with pytest.raises(KeyboardInterrupt):
            answers(bad, [(1,)], {})
    else:
        assert answers(bad, [(1,)], {}) == Fault(reason, "raised")
