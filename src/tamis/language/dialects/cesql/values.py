"""The values of CESQL: its types, operators, functions and casts, evaluated for constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tamis.errors import Span
from tamis.model.text_semantics import text_holds

TEXT, INTEGER, BOOLEAN = "String", "Integer", "Boolean"
LOWEST, HIGHEST = -(2**31), 2**31 - 1
SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as Unicode defines it, as the inside of a class of a regular expression."""

Value = str | int | bool
_WHOLE = re.compile(r"[+-]?[0-9]+")
_OUTER_SPACE = re.compile(f"^[{SPACES}]+|[{SPACES}]+\\Z")


class Constant(NamedTuple):
    """A literal."""

    value: Value
    span: Span


class Attribute(NamedTuple):
    """The value of a context attribute."""

    name: str
    span: Span


class Exists(NamedTuple):
    """Whether the event has a context attribute."""

    name: str
    span: Span


class Applied(NamedTuple):
    """An operator or a function with its arguments. `and`, `or` and `xor` may have many."""

    name: str
    arguments: tuple[Node, ...]
    span: Span


Node = Constant | Attribute | Exists | Applied


class EvaluationError(Exception):
    """An error of CESQL, such as a cast that fails; the event does not match."""


def type_of_value(value: Value) -> str:
    """The type of a value; true is not an integer."""
    return {bool: BOOLEAN, int: INTEGER}.get(type(value), TEXT)


def cast(value: Value, target: str) -> Value:
    """A value as another type, or an `EvaluationError`."""
    if type_of_value(value) == target:
        return value
    if target == TEXT:
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        return int(value) if target == INTEGER else bool(value)
    if target == BOOLEAN and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if target == INTEGER and _WHOLE.fullmatch(value):
        digits = value.lstrip("+-0")  # before int(), which is slow for many
        number = int(value) if len(digits) <= 10 else HIGHEST + 1
        if LOWEST <= number <= HIGHEST:
            return number
    raise EvaluationError(f"{value!r:.80} is not {'an' if target == INTEGER else 'a'} {target}")


class Definition(NamedTuple):
    """What an operator or a function takes and returns.

    The last of `parameters` repeats if it is `many`. `work` is None where the types of the
    arguments decide, or where not all of them are evaluated.
    """

    parameters: tuple[str, ...]
    result: str
    work: Callable[..., Value] | None = None
    many: bool = False


def _whole(number: int) -> int:
    if LOWEST <= number <= HIGHEST:
        return number
    raise EvaluationError(f"{number} is outside the 32-bit integers")


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("a division by zero")
    quotient = abs(left) // abs(right)
    return _whole(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("a division by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _part(text: str, position: int, size: int = HIGHEST) -> str:
    if abs(position) > len(text) or size < 0:
        raise EvaluationError("SUBSTRING reaches outside the text")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + size]


def _end(text: str, size: int, left: bool) -> str:
    if size < 0:
        raise EvaluationError("LEFT and RIGHT take a size that is not negative")
    return text[:size] if left else text[max(0, len(text) - size) :]


def _casts(text: str, target: str) -> bool:
    try:
        cast(text, target)
    except EvaluationError:
        return False
    return True


def like_pattern(pattern: str) -> str:
    """A pattern as tamis writes it, where a backslash escapes any character."""
    return re.sub(r"\\(?![%_])", r"\\\\", pattern)


_NUMBERS, _TWO_WORDS = (INTEGER, INTEGER), (BOOLEAN, BOOLEAN)
FUNCTIONS: Mapping[tuple[str, int], Definition] = {
    ("LENGTH", 1): Definition((TEXT,), INTEGER, len),
    ("CONCAT", 0): Definition((), TEXT, lambda: ""),
    ("CONCAT", 1): Definition((TEXT,), TEXT, lambda *parts: "".join(parts), many=True),
    ("CONCAT_WS", 1): Definition((TEXT,), TEXT, lambda *all_: all_[0].join(all_[1:]), many=True),
    ("LOWER", 1): Definition((TEXT,), TEXT, str.lower),
    ("UPPER", 1): Definition((TEXT,), TEXT, str.upper),
    ("TRIM", 1): Definition((TEXT,), TEXT, lambda text: _OUTER_SPACE.sub("", text)),
    ("LEFT", 2): Definition((TEXT, INTEGER), TEXT, lambda text, size: _end(text, size, True)),
    ("RIGHT", 2): Definition((TEXT, INTEGER), TEXT, lambda text, size: _end(text, size, False)),
    ("SUBSTRING", 2): Definition((TEXT, INTEGER), TEXT, _part),
    ("SUBSTRING", 3): Definition((TEXT, INTEGER, INTEGER), TEXT, _part),
    ("ABS", 1): Definition((INTEGER,), INTEGER, lambda number: _whole(abs(number))),
    ("INT", 1): Definition((INTEGER,), INTEGER, lambda number: number),
    ("BOOL", 1): Definition((BOOLEAN,), BOOLEAN, lambda word: word),
    ("STRING", 1): Definition((TEXT,), TEXT, lambda text: text),
    ("IS_INT", 1): Definition((TEXT,), BOOLEAN, lambda text: _casts(text, INTEGER)),
    ("IS_BOOL", 1): Definition((TEXT,), BOOLEAN, lambda text: _casts(text, BOOLEAN)),
}
OPERATORS: Mapping[str, Definition] = {
    "not": Definition((BOOLEAN,), BOOLEAN, lambda word: not word),
    "negative": Definition((INTEGER,), INTEGER, lambda number: _whole(-number)),
    "*": Definition(_NUMBERS, INTEGER, lambda left, right: _whole(left * right)),
    "/": Definition(_NUMBERS, INTEGER, _divide),
    "%": Definition(_NUMBERS, INTEGER, _remainder),
    "+": Definition(_NUMBERS, INTEGER, lambda left, right: _whole(left + right)),
    "-": Definition(_NUMBERS, INTEGER, lambda left, right: _whole(left - right)),
    "<": Definition(_NUMBERS, BOOLEAN, lambda left, right: left < right),
    "<=": Definition(_NUMBERS, BOOLEAN, lambda left, right: left <= right),
    ">": Definition(_NUMBERS, BOOLEAN, lambda left, right: left > right),
    ">=": Definition(_NUMBERS, BOOLEAN, lambda left, right: left >= right),
    "xor": Definition(_TWO_WORDS, BOOLEAN, lambda left, right: left != right),
    "like": Definition((TEXT, TEXT), BOOLEAN, lambda text, pattern: text_holds(
        "like", text, like_pattern(pattern))),
    "=": Definition((), BOOLEAN),
    "!=": Definition((), BOOLEAN),
    "in": Definition((), BOOLEAN),
    "and": Definition(_TWO_WORDS, BOOLEAN),
    "or": Definition(_TWO_WORDS, BOOLEAN),
}  # fmt: skip


def definition(node: Applied) -> Definition:
    """The definition of an operator or a function that is known to exist."""
    found = OPERATORS.get(node.name) or function(node.name, len(node.arguments))
    assert found is not None
    return found


def function(name: str, size: int) -> Definition | None:
    """The function of a name with this many arguments."""
    found = FUNCTIONS.get((name, size))
    variadic = FUNCTIONS.get((name, 1))
    return found or (variadic if variadic is not None and variadic.many and size else None)


def parameter(of: Definition, at: int) -> str:
    """The type of an argument."""
    return of.parameters[min(at, len(of.parameters) - 1)]


def evaluate(node: Node, values: Mapping[str, Value]) -> Value:
    """The value of an expression, or an `EvaluationError`, as soon as there is one."""
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Exists):
        return node.name in values
    if isinstance(node, Attribute):
        if node.name not in values:
            raise EvaluationError(f"the event has no {node.name!r}")
        return values[node.name]
    name, arguments = node.name, node.arguments
    if name in ("and", "or"):
        found: Value = name == "and"
        for each in arguments:
            found = cast(evaluate(each, values), BOOLEAN)
            if found == (name == "or"):
                break
        return found
    if name == "in":
        left = evaluate(arguments[0], values)
        return any(
            cast(evaluate(each, values), type_of_value(left)) == left for each in arguments[1:]
        )
    return _apply(node, [evaluate(each, values) for each in arguments])


def _apply(node: Applied, given: Sequence[Value]) -> Value:
    name, what = node.name, definition(node)
    if name in ("=", "!="):
        left, right = given
        return (cast(left, type_of_value(right)) == right) == (name == "=")
    ready = [cast(value, parameter(what, at)) for at, value in enumerate(given)]
    assert what.work is not None
    if name == "xor":
        found = False
        for word in ready:
            found = found != word
        return found
    return what.work(*ready)


def leaves(node: Node) -> Iterator[Constant | Attribute | Exists]:
    """The parts of an expression that have no parts."""
    if isinstance(node, Applied):
        for each in node.arguments:
            yield from leaves(each)
    else:
        yield node


def is_constant(node: Node) -> bool:
    """Whether an expression does not depend on the event."""
    return all(isinstance(each, Constant) for each in leaves(node))


def type_in(node: Node, types: Mapping[str, str]) -> str:
    """The type of an expression, where the types of its attributes are known."""
    if isinstance(node, Constant):
        return type_of_value(node.value)
    if isinstance(node, Exists):
        return BOOLEAN
    return types[node.name] if isinstance(node, Attribute) else definition(node).result
