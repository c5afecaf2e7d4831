"""The tests of a field in an event pattern, and the conditions that they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_network
from typing import Any, NamedTuple

from tamis.errors import ConditionError, Span
from tamis.language.dialects.json_spans import JsonNode
from tamis.model.condition import (
    IGNORING_CASE,
    IS_SCALAR,
    OF_KIND,
    WITHIN,
    And,
    Condition,
    Not,
    Or,
    Predicate,
    Word,
)
from tamis.model.domain import Domain
from tamis.model.dynamic import BOOLEAN, NULL, NUMBER, TEXTUAL, Dynamic, kind_of_value

_SCALARS = (NULL, BOOLEAN, NUMBER, TEXTUAL)
_CASE = "equals-ignore-case"
_BLOCK = re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}")
_RANGES = ((">", "<"), (">", "<="), (">=", "<"), (">=", "<="))


class FieldTest(NamedTuple):
    """Pairs of a comparator of tamis and its value, which must all hold for one value.

    A test is `negated` if none may hold. The comparator `exists` holds for every value.
    """

    pairs: tuple[tuple[str, Any], ...]
    span: Span
    negated: bool = False


EXISTS = FieldTest((("exists", None),), (0, 0))


def read_tests(node: JsonNode) -> tuple[list[FieldTest], Span | None]:
    """The tests in the list of a field, and where it says that the field may be absent."""
    if not node.value:
        raise ConditionError("an empty list matches nothing", span=node.span)
    found: list[FieldTest] = []
    absent: Span | None = None
    for item in node.value:
        if isinstance(item.value, list):
            raise ConditionError("a list in a list of values", span=item.span)
        if not isinstance(item.value, dict):
            found.append(FieldTest((("=", item.value),), item.span))
            continue
        name, inner = _only(item)
        if name == "exists":
            if not isinstance(inner.value, bool):
                raise ConditionError(
                    f"'exists' is true or false, got {inner.what}", span=inner.span
                )
            if inner.value:
                found.append(EXISTS._replace(span=item.span))
            else:
                absent = item.span
        elif name == "anything-but":
            found.append(_anything_but(inner, item.span))
        elif name in _TESTS:
            found.append(FieldTest(_TESTS[name](inner, name), item.span))
        else:
            known = ", ".join(sorted((*_TESTS, "exists", "anything-but")))
            raise ConditionError(
                f"unknown test {name!r}", span=item.span, hint=f"tests are: {known}"
            )
    return found, absent


def _only(item: JsonNode) -> tuple[str, JsonNode]:
    """The only member of an object."""
    if len(item.value) != 1:
        raise ConditionError(
            f"a test has one name, got {len(item.value)}",
            span=item.span,
            hint='as in: {"prefix": "a"}',
        )
    ((name, inner),) = item.value.items()
    return name, inner


Pairs = tuple[tuple[str, Any], ...]


def _text(node: JsonNode, name: str) -> str:
    if not isinstance(node.value, str):
        raise ConditionError(f"{name!r} takes text, got {node.what}", span=node.span)
    return node.value


def _with_case(comparator: str) -> Callable[[JsonNode, str], Pairs]:
    """A test of text that may ignore case: {"prefix": {"equals-ignore-case": "a"}}."""

    def read(node: JsonNode, name: str) -> Pairs:
        if not isinstance(node.value, dict):
            return ((comparator, _text(node, name)),)
        inner_name, inner = _only(node)
        if inner_name != _CASE:
            raise ConditionError(
                f"unknown form {inner_name!r} of {name!r}", span=node.span, hint=f"write {_CASE!r}"
            )
        return ((comparator + IGNORING_CASE, _text(inner, _CASE)),)

    return read


def _plain(comparator: str) -> Callable[[JsonNode, str], Pairs]:
    return lambda node, name: ((comparator, _text(node, name)),)


def _wildcard(node: JsonNode, name: str) -> Pairs:
    """`*` is any text; a backslash is before a `*` or a backslash that is meant as such."""
    text, pattern, at = _text(node, name), "", 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            if text[at : at + 1] == "*":
                raise ConditionError("two '*' in a row", span=node.span, hint="write one")
            pattern += "%"
            continue
        if character == "\\":
            character = text[at : at + 1]
            if character not in ("*", "\\"):
                raise ConditionError(
                    "a backslash is followed by '*' or another backslash", span=node.span
                )
            at += 1
        pattern += f"\\{character}" if character in "%_\\" else character
    return (("like", pattern),)


def _network(node: JsonNode, name: str) -> Pairs:
    text = _text(node, name)
    try:
        if _BLOCK.fullmatch(text) is None:  # Python also reads masks, such as /255.0.0.0
            raise ValueError
        network = ip_network(text, strict=False)
        if network.prefixlen == network.max_prefixlen:
            raise ValueError
    except ValueError:
        raise ConditionError(
            f"{text!r:.80} is not a block of addresses",
            span=node.span,
            hint="write 10.0.0.0/8; for one address, write it without 'cidr'",
        ) from None
    return ((WITHIN, str(network)),)


def _numeric(node: JsonNode, name: str) -> Pairs:
    """["=", 5], ["<", 5] and so on, or a range such as [">", 0, "<=", 5]."""
    items = node.value if isinstance(node.value, list) else []
    words = tuple(item.value for item in items[::2])
    numbers = tuple(item.value for item in items[1::2])
    for item in items[1::2]:
        if isinstance(item.value, bool) or not isinstance(item.value, int | float):
            raise ConditionError(f"expected a number, got {item.what}", span=item.span)
    single = len(items) == 2 and words[0] in ("=", "<", "<=", ">", ">=")
    if not single and not (len(items) == 4 and words in _RANGES):
        raise ConditionError(
            "'numeric' takes a comparator and a number, or a range",
            span=node.span,
            hint='as in: ["=", 5], ["<", 5], [">", 0, "<=", 5]',
        )
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise ConditionError("the range is empty: its low end comes first", span=node.span)
    return tuple(zip(words, numbers, strict=True))


_TESTS: dict[str, Callable[[JsonNode, str], Pairs]] = {
    "exactly": _plain("="),
    "prefix": _with_case("starts with"),
    "suffix": _with_case("ends with"),
    _CASE: _plain("=" + IGNORING_CASE),
    "wildcard": _wildcard,
    "cidr": _network,
    "numeric": _numeric,
}
_EXCLUDABLE = ("prefix", "suffix", _CASE, "wildcard")


def _anything_but(node: JsonNode, span: Span) -> FieldTest:
    """A value, a list of values, or a test with a text or a list of texts."""
    given, read = node, None
    if isinstance(node.value, dict):
        name, given = _only(node)
        if name not in _EXCLUDABLE:
            raise ConditionError(
                f"'anything-but' has no form {name!r}",
                span=node.span,
                hint=f"it has: {', '.join(_EXCLUDABLE)}",
            )
        read = _TESTS[name]
    items = given.value if isinstance(given.value, list) else [given]
    if not items:
        raise ConditionError("'anything-but' of nothing", span=given.span)
    kinds = set()
    for item in items:
        kinds.add(kind_of_value(item.value))
        if kinds not in ({TEXTUAL}, {NUMBER}) or (read and kinds != {TEXTUAL}):
            raise ConditionError(
                f"'anything-but' takes texts{'' if read else ', or numbers'}, got {item.what}",
                span=item.span,
            )
        if read and not item.value and name in ("prefix", "suffix"):
            raise ConditionError("every text has this part: it is empty", span=item.span)
    if read is None:
        return FieldTest((("in", tuple(item.value for item in items)),), span, negated=True)
    pairs = tuple(pair for item in items for pair in read(item, name))
    return FieldTest(pairs, span, negated=True)


def present(name: str, domain: Domain | None, tests: Sequence[FieldTest], span: Span) -> Condition:
    """The condition that one value of an attribute passes one of the tests.

    The domain is None for an unknown attribute, which the type check refuses.
    """
    dynamic = isinstance(domain, Dynamic)
    parts: list[Condition] = []
    exact = [test for test in tests if test.pairs[0][0] == "=" and not test.negated]
    values = [value for test in exact for _, value in test.pairs if value is not None]
    if len(values) == 1:
        parts.append(Predicate(name, "=", values[0], exact[0].span))
    elif values:
        parts.append(Predicate(name, "in", tuple(values), span))
    for test in tests:
        if test.pairs == (("=", None),):
            if not dynamic:
                raise ConditionError(
                    f"{name!r} is not dynamic: its null is the same as no value",
                    span=test.span,
                    hint='to match that there is no value, write {"exists": false}',
                )
            parts.append(Predicate(name, OF_KIND, (Word(NULL),), test.span))
        elif test not in exact:
            parts.append(_condition(name, test, dynamic))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _condition(name: str, test: FieldTest, dynamic: bool) -> Condition:
    if test.pairs == EXISTS.pairs:
        return Predicate(name, IS_SCALAR if dynamic else "exists", None, test.span)
    parts: list[Condition] = [
        Predicate(name, comparator, value, test.span) for comparator, value in test.pairs
    ]
    if test.negated:
        parts = [Not(part) for part in parts]
    found = parts[0] if len(parts) == 1 else And(tuple(parts))
    if not test.negated or not dynamic:
        return found
    # A value of any other kind is something else, too.
    value = test.pairs[0][1]
    kind = kind_of_value(value[0] if isinstance(value, tuple) else value)
    others = tuple(Word(each) for each in _SCALARS if each != kind)
    return Or((found, Predicate(name, OF_KIND, others, test.span)))
