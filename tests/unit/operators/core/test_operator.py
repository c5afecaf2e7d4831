"""What the decorator takes and refuses; an operator is still the function it was made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import OperatorError, TamisError
from tamis.model.condition import Word
from tamis.model.operator import Parameter, Signature
from tamis.operators import Operator, operator


def test_what_it_knows() -> None:
    @operator(
        reads=("position", "camera.height"),
        arguments={"place": "text", "year": "number"},
        gives={"metres": "number", "label": "any"},
        cost=0.2,
        timeout=3,
        run="process",
    )
    def distance_from(position: Any, camera_height: Any, place: str, year: int) -> Any:
        """How far."""
        return position, camera_height, place, year

    assert isinstance(distance_from, Operator)
    assert distance_from.signature == Signature(
        "distance_from",
        (
            Parameter("place", "text", False),
            Parameter("year", "number", False),
            Parameter("metres", "number", True),
            Parameter("label", "any", True),
        ),
        ("position", "camera.height"),
    )
    assert (distance_from.cost, distance_from.timeout) == (0.2, 3)
    assert (distance_from.run, distance_from.batch) == ("process", False)
    assert distance_from(1, 2, "Bronx", year=4) == (1, 2, "Bronx", 4)
    assert distance_from.__doc__ == "How far."
    assert distance_from.name == "distance_from"
    assert "place, year, ?metres, ?label" in repr(distance_from)


def test_defaults_are_careful() -> None:
    @operator(reads="n")
    def plain(n: int) -> bool:
        return n > 0

    @operator
    def always() -> bool:
        return True

    assert (plain.run, plain.batch, plain.timeout) == ("thread", False, 1.0)
    assert plain.signature.reads == ("n",)
    assert always()
    assert always.signature == Signature("always", (), ())


def _takes(n: int, place: str) -> bool:
    return bool(n) and bool(place)


async def _later(n: int) -> bool:
    return bool(n)


def _yields(n: int) -> Any:
    yield n


REFUSED: list[tuple[dict[str, Any], Callable[..., Any], str]] = [
    ({"reads": ("n",)}, _takes, "'place' is neither read from the event nor an argument"),
    ({"reads": ("n",), "arguments": {"plase": "text"}}, _takes, "did you mean 'plase'"),
    ({"reads": ("n", "m"), "arguments": {"place": "text"}}, _takes, "no parameter of that name"),
    (
        {"reads": ("n",), "arguments": {"place": "text", "more": "any"}},
        _takes,
        "the argument 'more' is passed as 'more'",
    ),
    ({"reads": ("n",), "arguments": {"place": "string"}}, _takes, "unknown kind 'string'"),
    ({"reads": ("n",), "gives": {"x": None}}, lambda n: n, "unknown kind None"),
    ({"reads": ("n",), "gives": {"a b": "text"}}, lambda n: n, "not a valid name of a parameter"),
    ({"reads": ("n",), "arguments": ["place"]}, _takes, "mapping from name to kind"),
    ({"reads": (3,)}, lambda n: n, "names of attributes, not 3"),
    ({"reads": ("a.b", "a_b")}, lambda a_b: a_b, "both passed as 'a_b'"),
    ({"reads": ("n", "n")}, lambda n: n, "both passed as 'n'"),
    ({"reads": ("n",), "arguments": {"n": "any"}}, lambda n: n, "both passed as 'n'"),
    ({"arguments": {"n": "any"}, "gives": {"n": "any"}}, lambda n: n, "both passed as"),
    ({"reads": ("n",), "timeout": 0}, lambda n: n, "timeout is a number of seconds above 0"),
    ({"reads": ("n",), "timeout": float("nan")}, lambda n: n, "timeout"),
    ({"reads": ("n",), "timeout": float("inf")}, lambda n: n, "timeout"),
    ({"reads": ("n",), "timeout": 1e6}, lambda n: n, "more than a day"),
    ({"reads": ("n",), "timeout": "1"}, lambda n: n, "timeout"),
    ({"reads": ("n",), "cost": -1}, lambda n: n, "cost is a number of milliseconds above 0"),
    ({"reads": ("n",), "cost": True}, lambda n: n, "cost"),
    ({"reads": ("n",), "cost": float("nan")}, lambda n: n, "above 0, not nan"),
    (
        {"reads": ("n",), "cost": 1e39},
        lambda n: n,
        "a cost of 1e+39 milliseconds is more than a day",
    ),
    ({"reads": ("n",), "cost": 10**400}, lambda n: n, "milliseconds is more than a day"),
    ({"reads": ("n",), "cost": 10**5000}, lambda n: n, "milliseconds is more than a day"),
    (
        {"reads": ("n",), "cost": -(10**5000)},
        lambda n: n,
        "cost is a number of milliseconds above 0",
    ),
    ({"reads": ("n",), "cost": None}, lambda n: n, "above 0, not None"),
    (
        {"reads": ("n",), "timeout": -(10**400)},
        lambda n: n,
        "timeout is a number of seconds above 0",
    ),
    ({"reads": ("n",), "timeout": 10**400}, lambda n: n, "seconds is more than a day"),
    ({"reads": None}, lambda n: n, "'reads' holds names of attributes, not None"),
    ({"reads": 3}, lambda n: n, "'reads' holds names of attributes, not 3"),
    ({"arguments": 3}, lambda n: n, "mapping from name to kind"),
    ({"arguments": 0}, lambda: True, "mapping from name to kind"),
    ({"gives": {"x": ["number"]}}, lambda: 3, "unknown kind ['number'] of 'x'"),
    ({"reads": ("n",), "run": ["here"]}, lambda n: n, "unknown run=['here']"),
    ({"name": 3}, lambda: True, "cannot be named 3"),
    ({"reads": ("n",)}, lambda *a: a, "takes positional values only"),
    ({"reads": ("n",)}, lambda *n: n, "takes positional values only"),
    ({"reads": ("n",), "run": "fork"}, lambda n: n, "unknown run='fork'; known are here, thread"),
    ({"reads": ("n",), "batch": 10}, lambda n: n, 'batch is True, False or "pairs", not 10'),
    ({"batch": True}, lambda: True, "needs an attribute to read"),
    ({"reads": ("n",), "name": "3d"}, lambda n: n, "cannot be named '3d'"),
    ({"reads": ("n",), "name": "contains"}, lambda n: n, "conditions use this word"),
    ({"reads": ("n",), "name": "Not"}, lambda n: n, "conditions use this word"),
    ({"reads": ("n",)}, _later, "not one that awaits or yields"),
    ({"reads": ("n",)}, _yields, "not one that awaits or yields"),
    ({"reads": ("obj",)}, len, "positional-only"),
    ({"reads": ("x",)}, dict.fromkeys, "positional-only"),
    ({"reads": ("x",)}, type, "the parameters of"),
]


@pytest.mark.parametrize(("given", "function", "why"), REFUSED)
def test_refused(given: dict[str, Any], function: Callable[..., Any], why: str) -> None:
    named = {"name": "refused", **given}
    with pytest.raises(OperatorError) as caught:
        operator(**named)(function)
    assert why in str(caught.value)
    assert isinstance(caught.value, TamisError)


def test_a_name_is_needed() -> None:
    with pytest.raises(OperatorError, match="cannot be named '<lambda>'"):
        operator(reads=("n",))(lambda n: n)
    with pytest.raises(OperatorError, match="has no name"):
        operator(reads=("n",))(functools.partial(_takes, place="x"))
    with pytest.raises(OperatorError, match="takes a function, not 3"):
        operator(3)  # type: ignore[call-overload]


def test_functions_of_many_forms() -> None:
    class Threshold:
        def __init__(self, least: int) -> None:
            self.least = least

        def __call__(self, n: int) -> bool:
            return n >= self.least

        def below(self, n: int) -> bool:
            return n < self.least

    assert operator(name="t", reads=("n",))(Threshold(3))(4)
    assert operator(reads=("n",))(Threshold(3).below)(2)
    assert operator(name="p", reads=("n",))(functools.partial(_takes, place="x"))(1)
    assert operator(name="kept", reads=("n",))(lambda n, least=3: n > least)(4)
    assert operator(name="more", reads=("n",))(lambda n, *more: n > len(more))(1)
    anything = operator(name="rest", reads=("a b",), gives={"x": "any"})(lambda **rest: rest)
    assert anything.handed((1,)) == {}


def test_the_same_function_twice_and_attributes_of_a_function() -> None:
    one = operator(name="one", reads=("n",), arguments={"place": "text"})(_takes)
    two = operator(name="two", reads=("n",), arguments={"place": "text"}, timeout=2)(one)
    assert two.function is one.function is _takes
    assert (one.timeout, two.timeout) == (1, 2)

    def costly(n: int) -> bool:
        return n > 0

    costly.cost = "much"  # type: ignore[attr-defined]
    assert operator(reads=("n",), cost=3)(costly).cost == 3


def _near(n: int, place: str, metres: float | None = None) -> Any:
    return n, place, metres


near = Operator(
    _near,
    Signature(
        "near",
        (
            Parameter("place", "any", False),
            Parameter("metres", "number", True),
            Parameter("name", "text", True),
        ),
        ("n",),
    ),
)


def test_what_is_handed_over() -> None:
    assert near.handed(("Bronx", None, None)) == {"place": "Bronx", "metres": None}
    assert near.handed(("Bronx", 3, "x")) == {"place": "Bronx", "metres": 3}
    plain = near.handed((Word("Bronx"), -0.0, None))
    assert type(plain["place"]) is str
    assert str(plain["metres"]) == "0.0"
    with pytest.raises(OperatorError, match="takes 3 arguments, got 1"):
        near.handed(("Bronx",))


def test_keys() -> None:
    assert near.key(("Bronx", None, None)) == near.key((Word("Bronx"), None, "not handed over"))
    different = [("Bronx", 3), ("Bronx", None), ("3", 3), (3, 3), (3.0, 3), (True, 3), (1, 3)]
    assert len({near.key((place, metres, None)) for place, metres in different}) == 7


constants = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(-2, 2), st.text("ab1", max_size=2)
)
calls = st.tuples(constants, constants, constants)


@given(calls, calls)
def test_equal_keys_are_equal_calls(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    same = near.key(one) == near.key(other)
    handed = [sorted(map(repr, near.handed(each).items())) for each in (one, other)]
    assert same == (handed[0] == handed[1])
    if same:
        assert hash(near.key(one)) == hash(near.key(other))


class Checked(Operator):
    """Gives the answer that the test wants, or raises it."""

    answer: Any = None

    def check(self, arguments: Sequence[Any]) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def _checked(answer: Any) -> Checked:
    made = Checked(lambda place: True, Signature("near", (Parameter("place", "text", False),), ()))
    made.answer = answer
    return made


@pytest.mark.parametrize("answer", [None, "no such place", OperatorError("no such place")])
def test_a_check_says_what_is_wrong_or_nothing(answer: Any) -> None:
    """One of our own errors says what is wrong, too."""
    wanted = None if answer is None else "no such place"
    assert _checked(answer).refusal(("Bronx",)) == wanted
    with pytest.raises(KeyboardInterrupt):
        _checked(KeyboardInterrupt()).refusal(("Bronx",))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (KeyError("Bronx"), "raised KeyError: 'Bronx'"),
        (RecursionError(), "raised RecursionError"),
        (False, "a text that says what is wrong, or None, not False"),
        (["no"], "a text that says what is wrong, or None, not ['no']"),
        ("", "a text that says what is wrong, or None, not ''"),
    ],
)
def test_a_check_that_fails_is_the_operators_fault(answer: Any, says: str) -> None:
    with pytest.raises(OperatorError, match=r"^operator 'near': its check of ") as caught:
        _checked(answer).refusal(("Bronx",))
    assert says in str(caught.value)
