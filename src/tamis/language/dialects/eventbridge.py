"""Event patterns of Amazon EventBridge, as JSON.

    {"source": ["aws.ec2"], "detail": {"state": [{"anything-but": "pending"}]}}

A field matches if one of its values passes one of the tests in its list; a pattern matches if all
of its fields do. Fields below one object are about *one* object: if an event has a list there, one
element must pass them all. That is `some … in …` in the language of tamis. What the documentation
leaves open is as in event-ruler, the open implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tamis.errors import ConditionError, LimitError, Span
from tamis.language.dialects.eventbridge_tests import EXISTS, FieldTest, present, read_tests
from tamis.language.dialects.json_spans import JsonNode, read_json
from tamis.language.limits import PREDICATE_LIMIT
from tamis.model.condition import And, Condition, Not, Or, Predicate, Some
from tamis.model.domain import NAME_LIMIT
from tamis.model.dynamic import Dynamic
from tamis.model.elements.structs import Structs
from tamis.model.printer import to_text
from tamis.model.schema import Schema

_OR = "$or"
_MOST = 1000  # combinations of alternatives, as in EventBridge
_RESERVED = frozenset(
    ("exactly", "prefix", "suffix", "numeric", "anything-but", "exists", "cidr", "wildcard")
) | {"equals-ignore-case", "="}
"""Names of tests. An object with one of them is not an alternative of `$or`."""
_ELEMENT = "item"  # the name of elements in conditions
_DYNAMIC = Dynamic()


class Field(NamedTuple):
    """A field with its tests; `absent` if it must not be there."""

    path: tuple[str, ...]
    tests: tuple[FieldTest, ...]
    span: Span
    absent: bool = False


Alternative = dict[str, Field]
"""Fields that must all match, by name. As in event-ruler, the last field of a name counts."""


def read(text: str, schema: Schema) -> Condition:
    """The condition of an event pattern."""
    try:
        root = read_json(text)
        if not isinstance(root.value, dict):
            raise ConditionError(f"an event pattern is an object, got {root.what}", span=root.span)
        found = _object([{}], (), root)
        builder = _PatternBuilder(schema)
        conditions = [builder.condition([*each.values()]) for each in found]
        # A later field of the same name may have made alternatives equal. Their texts are compared,
        # because 1 equals True.
        parts = [*{to_text(each): each for each in conditions}.values()]
    except ConditionError as error:
        raise error.with_text(text) from None
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


# -- reading -------------------------------------------------------------------------------------


def _object(found: list[Alternative], path: tuple[str, ...], node: JsonNode) -> list[Alternative]:
    """The alternatives with what an object adds to each of them."""
    if not node.value:
        raise ConditionError("an empty object is no pattern", span=node.span)
    for name, inner in node.value.items():
        if name == _OR and _is_or(inner):
            made: list[Alternative] = []
            for choice in inner.value:
                made += _object([dict(one) for one in found], path, choice)
                _check_size(made, inner.span)
            found = made
        elif isinstance(inner.value, dict):
            found = _object(found, (*path, name), inner)
        elif isinstance(inner.value, list):
            found = _with_field(found, (*path, name), inner)
        else:
            raise ConditionError(
                f"{name!r} is {inner.what}, expected a list of values or an object",
                span=inner.span,
                hint=f'a single value is in a list too, as in: "{name}": ["…"]',
            )
    return found


def _is_or(node: JsonNode) -> bool:
    """Whether a list is one of alternatives: two or more objects that are not tests."""
    return (
        isinstance(node.value, list)
        and len(node.value) > 1
        and all(isinstance(each.value, dict) for each in node.value)
        and not any(_RESERVED & each.value.keys() for each in node.value)
    )


def _with_field(
    found: list[Alternative], path: tuple[str, ...], node: JsonNode
) -> list[Alternative]:
    """The alternatives with a field: two for each, if it may be absent or have a value."""
    tests, absent = read_tests(node)
    name = ".".join(path)
    if not name:
        raise ConditionError("the name of a field is empty", span=node.span)
    if len(name) > NAME_LIMIT:
        raise LimitError(f"a name is longer than {NAME_LIMIT} characters", span=node.span)
    path = tuple(name.split("."))  # a dot in a name is a step, too
    fields = [Field(path, tuple(tests), node.span)] if tests else []
    if absent is not None:
        fields.append(Field(path, (), absent, absent=True))
    made = [{**each, name: field} for each in found for field in fields]
    _check_size(made, node.span)
    return made


def _check_size(found: Sequence[Alternative], span: Span) -> None:
    """Refuse too much while it is read: every further field copies all alternatives."""
    if len(found) > _MOST:
        raise LimitError(f"more than {_MOST:,} combinations of alternatives", span=span)
    if sum(map(len, found)) > PREDICATE_LIMIT:
        raise LimitError(f"more than {PREDICATE_LIMIT:,} fields in all alternatives", span=span)


# -- conditions ----------------------------------------------------------------------------------


class _PatternBuilder(NamedTuple):
    """Builds conditions on events, or on elements, of a schema."""

    schema: Schema

    def condition(self, fields: Sequence[Field]) -> Condition:
        """All fields match: those below one object in one object."""
        below = self._lists_of(fields)
        groups: dict[tuple[str, ...], list[Field]] = {}
        for field in fields:
            groups.setdefault(below.get(field.path, ()), []).append(field)
        parts: list[Condition] = []
        for prefix, inner in groups.items():
            if prefix:
                parts.append(self._some(prefix, inner))
            else:
                parts.extend(map(self._field, inner))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _lists_of(self, fields: Sequence[Field]) -> dict[tuple[str, ...], tuple[str, ...]]:
        """For the path of a field, that of the list, or of what may be one, with its element.

        Fields for which any element will do are left out. As in event-ruler, a field is absent from
        one element if a field whose name comes before it is about that element. Otherwise it is
        absent from all.
        """
        alike: dict[tuple[str, ...], list[Field]] = {}
        for field in fields:
            known = field.path[:-1][:1] if self.schema.is_open else self._declared_list(field)
            alike.setdefault(known, []).append(field)
        alike.pop((), None)
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for prefix, some in alike.items():
            paths = [each.path for each in _together(some)]
            if not self.schema.is_open:
                found.update(dict.fromkeys(paths, prefix))
            elif len(paths) > 1:  # one field is about one element anyway
                found.update(dict.fromkeys(paths, _common_list(paths)))
        return found

    def _declared_list(self, field: Field) -> tuple[str, ...]:
        prefixes = (field.path[:size] for size in range(1, len(field.path)))
        return next((each for each in prefixes if ".".join(each) in self.schema.lists), ())

    def _some(self, prefix: tuple[str, ...], fields: Sequence[Field]) -> Some:
        name = ".".join(prefix)
        element = Schema.open()
        if not self.schema.is_open:
            structs = self.schema.attributes[name]
            assert isinstance(structs, Structs)
            element = structs.element
        inner = [each._replace(path=each.path[len(prefix) :]) for each in fields]
        span = min(each.span[0] for each in fields), max(each.span[1] for each in fields)
        return Some(_ELEMENT, name, _PatternBuilder(element).condition(inner), span)

    def _field(self, field: Field) -> Condition:
        name = ".".join(field.path)
        domain = _DYNAMIC if self.schema.is_open else self.schema.attributes.get(name)
        if not field.absent:
            return present(name, domain, field.tests, field.span)
        prefix = () if self.schema.is_open else self._declared_list(field)
        if prefix:  # absent from all elements
            there = field._replace(absent=False, tests=(EXISTS._replace(span=field.span),))
            listed = ".".join(prefix)
            missing = Predicate(listed, "missing", None, field.span)
            return Or((missing, Not(self._some(prefix, [there]))))
        return Not(present(name, domain, (EXISTS._replace(span=field.span),), field.span))


def _common_list(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest path above all of these."""
    first, last = min(paths), max(paths)  # what these share, all paths between them share
    shared = next((at for at, steps in enumerate(zip(first, last, strict=False))
                   if steps[0] != steps[1]), len(first))  # fmt: skip
    return first[: min(shared, *(len(each) - 1 for each in paths))]


def _together(alike: Sequence[Field]) -> list[Field]:
    """The fields that are about one element, of those that could be."""
    there = min((".".join(each.path) for each in alike if not each.absent), default=None)
    if there is None:
        return []
    return [each for each in alike if not each.absent or ".".join(each.path) > there]
