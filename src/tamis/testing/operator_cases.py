"""Random conditions with operators, and events that carry the operators' answers.

The attribute `seen` of an event has, for each operator and name, the rows that the operator
returns, or a fault. So the definition of truth and an engine use the same operators, and every kind
of answer occurs: true, false, bindings, several values, faults.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from tamis.model.condition import (
    And,
    Arithmetic,
    Call,
    Condition,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    ValueConstraint,
    Variable,
)
from tamis.model.operator import Fault, Parameter, Rows, Signature
from tamis.model.schema import Schema
from tamis.operators.operator import Operator

SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "price": {"kind": "integer", "low": 0, "high": 9},
            "colour": {"kind": "enumerated", "values": ["red", "green", "blue"]},
            "seen": "opaque",
            "heard": "opaque",
        },
        "event_types": {
            "sighting": {
                "price": "mandatory",
                "colour": "optional multiple",
                "seen": "mandatory",
                "heard": "optional multiple",
            }
        },
    }
)
_NAMES = ("a", "b", "c")
_VALUES: tuple[Any, ...] = (0, 1, 1.0, 2, 3, 2.5, "x", "y", True, False)
_COMPARATORS = ("=", "!=", "<", "<=", ">", ">=")


def _answer(seen: Mapping[str, Any], what: str, name: str) -> Any:
    found = seen.get(f"{what} {name}")
    if found == "fails":
        raise RuntimeError(f"{what} {name} fails")
    return found


def flag(seen: Mapping[str, Any], name: str) -> bool:
    """True or false."""
    return bool(_answer(seen, "flag", name))


def heard(heard: list[Mapping[str, Any]], name: list[str]) -> list[Any]:
    """Reads an attribute that may be absent or have several values; takes pairs, some fail."""

    def answered(seen: Mapping[str, Any], name: str) -> Any:
        try:
            return bool(_answer(seen, "flag", name))
        except RuntimeError as error:
            return error

    return list(map(answered, heard, name))


def one(seen: Mapping[str, Any], name: str) -> Any:
    """Bindings of one variable."""
    return _answer(seen, "one", name) or []


def two(seen: list[Mapping[str, Any]], name: list[str]) -> list[Any]:
    """Bindings of two variables, for pairs: if one fails, all are called again."""
    return [
        [tuple(row) for row in _answer(each, "two", of) or []]
        for each, of in zip(seen, name, strict=True)
    ]


def every(seen: list[Mapping[str, Any]]) -> list[Any]:
    """Bindings for a batch of events."""
    return [_answer(each, "one", "a") or [] for each in seen]


def _operator(
    function: Callable[..., Any],
    reads: str,
    gives: tuple[str, ...] = (),
    *,
    batch: bool | str = False,
) -> Operator:
    """An operator that is not registered: an engine must be given it."""
    fixed = () if batch is True else (Parameter("name", "text", free=False),)
    free = tuple(Parameter(name, "any", free=True) for name in gives)
    signature = Signature(function.__name__, (*fixed, *free), (reads,))
    return Operator(function, signature, run="here", batch=batch)


OPERATORS = (
    _operator(flag, "seen"),
    _operator(heard, "heard", batch="pairs"),
    _operator(one, "seen", ("n",)),
    _operator(two, "seen", ("m", "n"), batch="pairs"),
    _operator(every, "seen", ("n",), batch=True),
)


def truths() -> dict[str, tuple[Signature, Callable[[Any, Any], Rows | Fault]]]:
    """The same operators for the definition of truth. They share only the data."""

    def truth(what: str, rows: Callable[[Any], Rows]) -> Callable[[Any, Any], Rows | Fault]:
        def answer(reads: tuple[Any, ...], given: tuple[Any, ...]) -> Rows | Fault:
            found = reads[0].get(f"{what} {given[0]}") or []
            return Fault("fails") if found == "fails" else rows(found)

        return answer

    flags = truth("flag", lambda found: ((),) if found else ())
    ones = truth("one", lambda found: tuple((each,) for each in found))
    twos = truth("two", lambda found: tuple(map(tuple, found)))
    plain = {"flag": flags, "heard": flags, "one": ones, "two": twos}
    plain["every"] = lambda reads, _: ones(reads, ("a",))
    return {each.signature.name: (each.signature, plain[each.signature.name]) for each in OPERATORS}


def event(chance: random.Random) -> dict[str, Any]:
    """An event, with the answers of all operators."""
    made: dict[str, Any] = {"price": chance.randrange(10), "seen": _seen(chance)}
    if chance.random() < 0.7:
        made["colour"] = chance.sample(["red", "green", "blue"], chance.randint(1, 2))
    if chance.random() < 0.7:
        made["heard"] = [_seen(chance) for _ in range(chance.randint(1, 2))]
    return made


def _seen(chance: random.Random) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name in _NAMES:
        seen[f"flag {name}"] = chance.random() < 0.6
        seen[f"one {name}"] = [chance.choice(_VALUES) for _ in range(chance.randint(0, 3))]
        seen[f"two {name}"] = [
            [chance.choice(_VALUES), chance.choice(_VALUES)] for _ in range(chance.randint(0, 4))
        ]
        for what in ("flag", "one", "two"):
            if chance.random() < 0.05:
                seen[f"{what} {name}"] = "fails"
    return seen


def condition(chance: random.Random) -> Condition:
    """A condition. It may be refused, because nothing binds a variable."""
    if chance.random() < 0.25:
        parts = tuple(condition(chance) for _ in range(chance.randint(2, 3)))
        return Or(parts) if chance.random() < 0.7 else And(parts)
    return _conjunction(chance)


def _conjunction(chance: random.Random) -> Condition:
    parts: list[Condition] = []
    bound: list[str] = []
    for _ in range(chance.randint(1, 3)):
        call = _call(chance)
        bound.extend(each.name for each in call.arguments if isinstance(each, Variable))
        parts.append(call)
    parts.extend(_ordinary(chance) for _ in range(chance.randint(0, 2)))
    if chance.random() < 0.4:
        parts.append(Not(_call(chance, bound)))
    if bound:
        for _ in range(chance.randint(0, 2)):
            constraint = _constraint(chance, bound)
            parts.append(Not(constraint) if chance.random() < 0.2 else constraint)
    chance.shuffle(parts)
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def _ordinary(chance: random.Random) -> Condition:
    leaf: Condition = Predicate("price", chance.choice(("<", ">=", "!=")), chance.randrange(10))
    if chance.random() < 0.3:
        leaf = Or((leaf, Predicate("colour", "contains", "red")))
    return Not(leaf) if chance.random() < 0.3 else leaf


def _call(chance: random.Random, known: list[str] | None = None) -> Call:
    """A call. Its variables are from `known`, if given."""

    def argument() -> Constant | Variable:
        if chance.random() < 0.2 or known == []:
            constant: Constant = chance.choice(_VALUES)
            return constant
        return Variable(chance.choice(known or ("x", "y", "z")))

    name = chance.choice(_NAMES)
    kind = chance.randrange(5)
    if kind == 0:
        return Call("flag", (name,))
    if kind == 1:
        return Call("heard", (name,))
    if kind == 2:
        return Call("one", (name, argument()))
    if kind == 3:
        return Call("every", (argument(),))
    return Call("two", (name, argument(), argument()))


def _constraint(chance: random.Random, bound: list[str]) -> ValueConstraint:
    some: list[Expression] = [0, 1, 2, 2.5, 3, "x", True, Variable(chance.choice(bound))]
    right = chance.choice(some)
    if chance.random() < 0.3:
        right = Arithmetic(chance.choice("+-*/"), right, chance.choice([0, 1, 2]))
    comparator = chance.choice(_COMPARATORS)
    return ValueConstraint(Variable(chance.choice(bound)), comparator, right)
