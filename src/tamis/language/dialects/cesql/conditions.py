"""Expressions of CESQL as conditions of tamis.

An expression is true, false or an error of an event. A condition is made for each of the two that
are needed: `not x` is true where `x` is false, and an error is neither. What an operator or a
function asks of its result becomes a set of values of the attribute; see `value_sets`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import product
from math import prod

from tamis.errors import ConditionError, LimitError, Span, nearest
from tamis.language.dialects.cesql import value_sets as sets
from tamis.language.dialects.cesql.formulas import Formula, FormulaMaker
from tamis.language.dialects.cesql.sources import (
    SourceFinder,
    Types,
    Wanted,
    constant_within,
)
from tamis.language.dialects.cesql.value_sets import (
    EVERY_INTEGER,
    EVERY_TEXT,
    InexpressibleError,
    TextSet,
    spread,
)
from tamis.language.dialects.cesql.values import (
    BOOLEAN,
    HIGHEST,
    INTEGER,
    LOWEST,
    TEXT,
    Applied,
    Attribute,
    Constant,
    EvaluationError,
    Exists,
    Node,
    Value,
    cast,
    definition,
    evaluate,
    is_constant,
    leaves,
    like_pattern,
    type_in,
    type_of_value,
)
from tamis.model.condition import (
    COMPLEMENTS,
    IS_NULL,
    OF_KIND,
    AttributeValue,
    Comparison,
    Not,
    Predicate,
    Word,
)
from tamis.model.dynamic import BOOLEAN as LOGICAL
from tamis.model.dynamic import NUMBER, TEXTUAL
from tamis.model.schema import Schema

REQUIRED = ("id", "source", "type", "specversion")
"""Every CloudEvent has these."""
_TEXTS = (*REQUIRED, "subject", "time", "dataschema", "datacontenttype")
_KINDS = {TEXT: TEXTUAL, INTEGER: NUMBER, BOOLEAN: LOGICAL}
_OF_DOMAIN = {
    "text": (TEXT,),
    "enumerated": (TEXT,),
    "integer": (INTEGER,),
    "boolean": (BOOLEAN,),
    "dynamic": (TEXT, INTEGER, BOOLEAN),
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_MOST_TYPES = 81  # ways in which attributes may have types: four that may have any
_MOST_EXCLUSIVE = 8  # operands of XOR: each further one doubles the condition


class ExpressionTranslator:
    """Makes conditions for a schema, in which the names of attributes begin with a prefix."""

    def __init__(self, schema: Schema, prefix: str) -> None:
        self.schema, self.prefix = schema, prefix
        self.make = FormulaMaker()
        self.sources = SourceFinder(prefix, self.make, self._exists, self._in_types)
        self._known: dict[tuple[int, bool | None], tuple[Node, Formula]] = {}
        self._typed: dict[tuple[int, bool | None, int], tuple[Node, Types, Formula]] = {}

    # -- attributes ----------------------------------------------------------------------------

    def types(self, node: Attribute) -> tuple[str, ...]:
        """The types that an attribute may have."""
        name = self._declared(node.name, node.span)
        if self.schema.is_open:
            return (TEXT,) if node.name in _TEXTS else _OF_DOMAIN["dynamic"]
        kind = self.schema.attributes[name].kind
        if kind not in _OF_DOMAIN:
            raise ConditionError(
                f"{name!r} is {kind}, which is no type of CESQL",
                span=node.span,
                hint="CESQL has String, Integer and Boolean: text, integer or boolean here; "
                f"EXISTS {node.name} works with any",
            )
        return _OF_DOMAIN[kind]

    def _declared(self, name: str, span: Span) -> str:
        full = self.prefix + name
        if not self.schema.is_open and full not in self.schema.attributes:
            raise ConditionError(
                f"unknown attribute {full!r}",
                span=span,
                hint=nearest(full, self.schema.attributes),
            )
        return full

    def _present(self, name: str, span: Span, there: bool = True) -> Formula:
        if name in REQUIRED:
            return there
        full = self._declared(name, span)
        null = Predicate(full, IS_NULL, None, span)
        if self.schema.is_open or self.schema.attributes[full].kind == "dynamic":
            return Not(null) if there else null
        return Predicate(full, "exists" if there else "missing", None, span)

    # -- true, false or an error ---------------------------------------------------------------

    def filter(self, node: Node) -> Formula:
        """When an expression is the Boolean true, with no error."""
        if isinstance(node, Attribute):
            if BOOLEAN not in self.types(node):
                raise ConditionError(
                    f"{node.name!r} is a String or an Integer, and a filter is a Boolean",
                    span=node.span,
                    hint="compare it, as in: subject = 'desk'",
                )
            return self.sources.within(node, BOOLEAN, frozenset((True,)), {node.name: BOOLEAN})
        of = type_of_value(node.value) if isinstance(node, Constant) else type_in(node, {})
        if of != BOOLEAN:
            raise ConditionError(
                f"the expression is of type {of}, and a filter is a Boolean", span=node.span
            )
        return self.when(node, True)

    def when(self, node: Node, wanted: bool | None) -> Formula:
        """When an expression is true, or false; or, for None, when it is no error."""
        key = (id(node), wanted)
        if key not in self._known:
            self._known[key] = (node, self._when(node, wanted))
        return self._known[key][1]

    def _when(self, node: Node, wanted: bool | None) -> Formula:
        if isinstance(node, Exists):
            return True if wanted is None else self._exists(node, wanted)
        if isinstance(node, Applied) and node.name in ("and", "or", "xor", "not"):
            return self._connected(node, wanted, self.when)
        if isinstance(node, Applied) and _ends_early(node):
            left, *items = node.arguments  # one after the other, up to the first that is equal
            same = tuple(Applied("=", (item, left), node.span) for item in items)
            return self.when(Applied("or", same, node.span), wanted)
        return self._by_type(node, wanted)

    def _exists(self, node: Exists, there: bool) -> Formula:
        return self._present(node.name, node.span, there)

    def _connected(
        self, node: Applied, wanted: bool | None, when: Callable[[Node, bool | None], Formula]
    ) -> Formula:
        parts = node.arguments
        if node.name == "not":
            return when(parts[0], wanted if wanted is None else not wanted)
        if node.name == "xor":
            return self._exclusive(node, wanted, when)
        decided = node.name == "or"  # a part of this value ends the evaluation
        if wanted == (not decided):
            return self.make.all(when(part, wanted) for part in parts)
        found: list[Formula] = []
        before: list[Formula] = []  # the parts before had no error
        for part in parts:
            own = when(part, None)
            guards = [guard for guard in before if guard != own]
            found.append(self.make.all((*guards, when(part, decided))))
            if own is not True and own not in before:
                before.append(own)
        if wanted is None:
            found.append(self.make.all(before))
        return self.make.any(found)

    def _exclusive(
        self, node: Applied, wanted: bool | None, when: Callable[[Node, bool | None], Formula]
    ) -> Formula:
        parts = node.arguments
        if len(parts) > _MOST_EXCLUSIVE:
            raise LimitError(f"more than {_MOST_EXCLUSIVE} parts of XOR", span=node.span)
        if wanted is None:
            return self.make.all(when(part, None) for part in parts)
        found: list[Formula] = []
        for words in product((True, False), repeat=len(parts)):
            if (sum(words) % 2 == 1) == wanted:
                pairs = zip(parts, words, strict=True)
                found.append(self.make.all(when(part, word) for part, word in pairs))
        return self.make.any(found)

    def _by_type(self, node: Node, wanted: bool | None) -> Formula:
        """An expression whose meaning depends on the types of its attributes."""
        read = {each.name: each for each in _read_by(node)}
        if not read:
            return self._in_types(node, wanted, {})
        choices = {name: self.types(each) for name, each in read.items()}
        if prod(map(len, choices.values())) > _MOST_TYPES:
            raise LimitError(
                "one operator or function with too many attributes whose types are not known",
                span=node.span,
                hint="a schema that says their types makes it possible",
            )
        found: list[Formula] = []
        complete = True
        for chosen in product(*choices.values()):
            types = dict(zip(choices, chosen, strict=True))
            try:
                formula = self._in_types(node, wanted, types)
            except InexpressibleError as why:
                raise ConditionError(
                    f"no condition of tamis means this: {why}",
                    span=node.span,
                    hint=_hint(types, choices),
                ) from None
            complete = complete and formula is True
            if formula is True or (len(types) > 1 and not isinstance(formula, Comparison)):
                kinds = (self._of_type(each, types[name], len(choices[name]))
                         for name, each in read.items())  # fmt: skip
                formula = self.make.all((*kinds, formula))
            found.append(formula)
        if complete:
            return self.make.all(self._present(each.name, each.span) for each in read.values())
        return self.make.any(found)

    def _of_type(self, node: Attribute, of: str, choices: int) -> Formula:
        if choices == 1:
            return self._present(node.name, node.span)
        return Predicate(self.prefix + node.name, OF_KIND, (Word(_KINDS[of]),), node.span)

    def _in_types(self, node: Node, wanted: bool | None, types: Types) -> Formula:
        """When a Boolean has a value, in events whose attributes have these types."""
        key = (id(node), wanted, id(types))
        if key not in self._typed:  # an operator above asks several times
            self._typed[key] = (node, types, self._in_new_types(node, wanted, types))
        return self._typed[key][2]

    def _in_new_types(self, node: Node, wanted: bool | None, types: Types) -> Formula:
        if not isinstance(node, Applied) or definition(node).result != BOOLEAN:
            return self.sources.within(node, BOOLEAN, _words(wanted), types)
        name, parts = node.name, node.arguments
        if is_constant(node):
            return constant_within(node, BOOLEAN, _words(wanted))
        if name in ("xor", "not"):
            return self._connected(node, wanted, partial(self._in_types, types=types))
        if name in ("and", "or") or _ends_early(node):
            # A part that is not evaluated raises no error. Types do not show which part that is.
            raise ConditionError(
                f"{name.upper()} of attributes inside another operator or function",
                span=node.span,
                hint="outside of NOT, AND and OR, its result cannot be used",
            )
        if name == "like":
            assert isinstance(parts[1], Constant)
            likes = TextSet(likes=(like_pattern(str(parts[1].value)),))
            return self.sources.within(parts[0], TEXT, _texts(likes, wanted), types)
        if name == "in":
            return self._in(node, wanted, types)
        if name in ("IS_INT", "IS_BOOL"):
            return self._is(node, wanted, types)
        if name == "BOOL":
            return self.sources.within(parts[0], BOOLEAN, _words(wanted), types)
        return self._compared(name, parts[0], parts[1], wanted, types, node.span)

    def _is(self, node: Applied, wanted: bool | None, types: Types) -> Formula:
        """Whether a text can be cast; an error only if its argument is one."""
        part = node.arguments[0]
        of = type_in(part, types)
        if of == TEXT:
            found = sets.whole_numbers(EVERY_INTEGER)
            if node.name == "IS_BOOL":
                either = map(sets.word_of, (True, False))
                found = TextSet(expressions=tuple(each.expressions[0] for each in either))
            return self.sources.within(part, TEXT, _texts(found, wanted), types)
        casts = of == (INTEGER if node.name == "IS_INT" else BOOLEAN)
        return wanted in (None, casts) and self.sources.within(part, of, _everything(of), types)

    def _in(self, node: Applied, wanted: bool | None, types: Types) -> Formula:
        """Constants are compared from left to right, up to the first that is equal."""
        left, *items = node.arguments
        of = type_in(left, types)
        values: list[Value] = []
        failed = False
        for item in items:
            try:
                values.append(cast(evaluate(item, {}), of))
            except EvaluationError:
                failed = True
                break
        listed = _only(of, values)
        if wanted is None and not failed:
            return self.sources.within(left, of, _everything(of), types)
        if wanted is False:
            return not failed and self.sources.within(left, of, _complement(listed), types)
        return self.sources.within(left, of, listed, types)

    def _compared(
        self, sign: str, left: Node, right: Node, wanted: bool | None, types: Types, span: Span
    ) -> Formula:
        of = type_in(right, types) if sign in ("=", "!=") else INTEGER
        for side, fixed, mark in ((left, right, sign), (right, left, _MIRRORED[sign])):
            if not is_constant(fixed):
                continue
            try:
                value = cast(evaluate(fixed, {}), of)
            except EvaluationError:
                return False
            return self.sources.within(side, of, _related(mark, value, of, wanted), types)
        if of == BOOLEAN:
            words = (True, False)
            return self.make.any(
                self.make.all((self.sources.within(left, of, frozenset((one,)), types),
                          self.sources.within(right, of, frozenset((other,)), types)))
                for one in words for other in words
                if wanted is None or ((one == other) == (sign == "=")) == wanted
            )  # fmt: skip
        one, other = _plain(left), _plain(right)
        if one is None or other is None or (types[one.name], types[other.name]) != (of, of):
            raise InexpressibleError(
                "a comparison of several attributes whose types differ, or that are changed"
            )
        if wanted is None:
            return True
        if one.name == other.name:
            return (sign in ("=", "<=", ">=")) == wanted
        names = [AttributeValue(self.prefix + each.name) for each in (one, other)]
        return Comparison(names[0], sign if wanted else COMPLEMENTS[sign], names[1], span)


def _hint(types: Types, choices: Mapping[str, tuple[str, ...]]) -> str | None:
    unclear = next((name for name in types if len(choices[name]) > 1), None)
    if unclear is None:
        return None
    return f"it may be possible if a schema says of which type {unclear!r} is"


def _ends_early(node: Applied) -> bool:
    """Whether it is an IN that may end before it reads all attributes of its set."""
    return node.name == "in" and not all(map(is_constant, node.arguments[1:]))


def _read_by(node: Node) -> Iterator[Attribute]:
    """The attributes whose values an expression reads."""
    return (each for each in leaves(node) if isinstance(each, Attribute))


def _plain(node: Node) -> Attribute | None:
    """An attribute, perhaps in a cast."""
    while isinstance(node, Applied) and node.name in ("STRING", "INT"):
        node = node.arguments[0]
    return node if isinstance(node, Attribute) else None


def _words(wanted: bool | None) -> frozenset[bool]:
    return frozenset((True, False) if wanted is None else (wanted,))


def _texts(found: TextSet, wanted: bool | None) -> TextSet:
    if wanted is None:
        return EVERY_TEXT
    return found if wanted else found.others


def _everything(of: str) -> Wanted:
    if of == TEXT:
        return EVERY_TEXT
    return EVERY_INTEGER if of == INTEGER else _words(None)


def _only(of: str, values: Collection[Value]) -> Wanted:
    """A set of values of one type."""
    if of == TEXT:
        return TextSet(tuple(map(str, values)))
    if of == INTEGER:
        return spread((int(value), int(value)) for value in values)
    return frozenset(map(bool, values))


def _complement(of: Wanted) -> Wanted:
    if isinstance(of, TextSet):
        return of.others
    return _words(None) - of if isinstance(of, frozenset) else sets.others(of)


def _related(sign: str, value: Value, of: str, wanted: bool | None) -> Wanted:
    """What compares with a value, or does not; or everything that may be compared."""
    if wanted is None:
        return _everything(of)
    if sign in ("=", "!="):
        found = _only(of, (value,))
        return found if (sign == "=") == wanted else _complement(found)
    number = int(value)
    ranges = {
        "<": (LOWEST, number - 1),
        "<=": (LOWEST, number),
        ">": (number + 1, HIGHEST),
        ">=": (number, HIGHEST),
    }
    found = spread((ranges[sign],))
    return found if wanted else sets.others(found)
