"""When an expression has a value in a set, as a condition on its attribute.

Each operator and function turns the set of results that are wanted into the set of arguments that
lead there, until only the attribute is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from tamis.language.dialects.cesql import value_sets as sets
from tamis.language.dialects.cesql.formulas import Formula, FormulaMaker
from tamis.language.dialects.cesql.value_sets import (
    EVERY_TEXT,
    InexpressibleError,
    Spread,
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
    evaluate,
    is_constant,
    type_in,
)
from tamis.model.condition import Predicate

Wanted = TextSet | Spread | frozenset[bool]
"""A set of values of one type."""
Types = Mapping[str, str]
"""The type that an attribute has in the event."""


class SourceFinder:
    """Finds what an attribute must be.

    `present` says when an event has an attribute, or has it not; `true` when an operator with a
    Boolean result is true, or false.
    """

    def __init__(
        self,
        prefix: str,
        make: FormulaMaker,
        present: Callable[[Exists, bool], Formula],
        true: Callable[[Node, bool, Types], Formula],
    ) -> None:
        self.prefix, self.make, self._present, self._true = prefix, make, present, true

    def within(self, node: Node, target: str, wanted: Wanted, types: Types) -> Formula:
        """When an expression has no error and a value in a set, after a cast to a type.

        Only events are meant whose attributes have the types given.
        """
        if is_constant(node):
            return constant_within(node, target, wanted)
        of = type_in(node, types)
        if isinstance(wanted, frozenset):
            return self.make.any(self._word(node, of, word, types) for word in wanted)
        if of == BOOLEAN:
            has = partial(_contains, wanted)
            words = (word for word in (True, False) if has(cast(word, target)))
            return self.make.any(self._word(node, of, word, types) for word in words)
        if isinstance(wanted, TextSet):
            if of == INTEGER:
                return self._number(node, sets.written_integers(wanted), types)
            return self._text(node, wanted, types)
        if of == TEXT:
            return self._text(node, sets.whole_numbers(wanted), types)
        return self._number(node, wanted, types)

    def _word(self, node: Node, of: str, word: bool, types: Types) -> Formula:
        if of == TEXT:
            return self._text(node, sets.word_of(word), types)
        if of == INTEGER:
            zero = ((0, 0),)
            return self._number(node, sets.others(zero) if word else zero, types)
        if isinstance(node, Attribute):
            return Predicate(self.prefix + node.name, "=", word, node.span)
        if isinstance(node, Exists):
            return self._present(node, word)
        return self._true(node, word, types)

    def _number(self, node: Node, wanted: Spread, types: Types) -> Formula:
        """An expression of type Integer."""
        if not wanted:
            return False
        if isinstance(node, Attribute):
            return self.make.integers(self.prefix + node.name, wanted, node.span)
        assert isinstance(node, Applied)
        name, parts = node.name, node.arguments
        if name == "INT":
            return self.within(parts[0], INTEGER, wanted, types)
        if name == "LENGTH":
            if type_in(parts[0], types) == INTEGER:
                return self.within(parts[0], INTEGER, sets.written_length(wanted), types)
            return self.within(parts[0], TEXT, sets.of_length(wanted), types)
        if name == "ABS":
            found = spread((max(low, 0), high) for low, high in wanted)
            both = spread([*found, *((-high, -low) for low, high in found)])
            return self.within(parts[0], INTEGER, both, types)
        if name == "negative":
            return self.within(parts[0], INTEGER, spread((-b, -a) for a, b in wanted), types)
        return self._arithmetic(node, wanted, types)

    def _arithmetic(self, node: Applied, wanted: Spread, types: Types) -> Formula:
        """A sum or difference with a constant, or a product or quotient of one."""
        left, right = node.arguments
        fixed = right if is_constant(right) else left
        if not is_constant(fixed):
            raise InexpressibleError("arithmetic with several attributes")
        try:
            by = cast(evaluate(fixed, {}), INTEGER)
        except EvaluationError:
            return False
        assert isinstance(by, int)
        inner = left if fixed is right else right
        source = _SOURCES.get((node.name, fixed is right))
        if source is None:
            raise InexpressibleError(
                f"the operator {node.name} with an attribute"
                + (" on its right" if node.name == "/" else "")
            )
        ranges = spread(pair for low, high in wanted for pair in source(low, high, by))
        return self.within(inner, INTEGER, ranges, types)

    def _text(self, node: Node, wanted: TextSet, types: Types) -> Formula:
        """An expression of type String."""
        if wanted == TextSet():
            return False
        if isinstance(node, Attribute):
            return self.make.texts(self.prefix + node.name, wanted, node.span)
        assert isinstance(node, Applied)
        name, parts = node.name, node.arguments
        if name == "STRING":
            return self.within(parts[0], TEXT, wanted, types)
        if name in ("CONCAT", "CONCAT_WS"):
            return self._joined(node, wanted, types)
        inner = parts[0]
        if not all(map(is_constant, parts[1:])):
            raise InexpressibleError(f"{name} with a number that is not constant")
        try:
            sizes = [cast(evaluate(each, {}), INTEGER) for each in parts[1:]]
        except EvaluationError:
            return False
        size = int(sizes[0]) if sizes else 0
        if name in ("LEFT", "RIGHT"):
            if size < 0:
                return False
            cut = sets.left_of if name == "LEFT" else sets.right_of
            return self.within(inner, TEXT, wanted.through(name, partial(cut, size)), types)
        if name == "SUBSTRING":
            length = int(sizes[1]) if len(sizes) > 1 else HIGHEST
            if length < 0:
                return False
            if size == 0 or length == 0:
                return wanted.has("") and self.within(
                    inner, TEXT, sets.longer_than(abs(size)) if size else EVERY_TEXT, types
                )
            source = partial(sets.part_of, size, length)
            there = sets.longer_than(abs(size)) if wanted.negated else EVERY_TEXT
            through = wanted.through(name, source)
            return self.make.all((self.within(inner, TEXT, through, types),
                             self.within(inner, TEXT, there, types)))  # fmt: skip
        of = type_in(inner, types)
        if of == INTEGER:  # has no letters and no white space
            return self.within(inner, TEXT, wanted, types)
        if of == BOOLEAN:
            words = {word: str(evaluate(Applied(name, (Constant(word, node.span),), node.span), {}))
                     for word in (True, False)}  # fmt: skip
            fitting = frozenset(word for word, text in words.items() if wanted.has(text))
            return self.within(inner, BOOLEAN, fitting, types)
        change = sets.trimmed if name == "TRIM" else partial(sets.in_case, name == "UPPER")
        return self.within(inner, TEXT, wanted.through(name, change), types)

    def _joined(self, node: Applied, wanted: TextSet, types: Types) -> Formula:
        """CONCAT and CONCAT_WS with one part that is not constant."""
        changing = [each for each in node.arguments if not is_constant(each)]
        if len(changing) > 1 or (node.name == "CONCAT_WS" and changing[0] is node.arguments[0]):
            raise InexpressibleError(f"{node.name} of several attributes")
        mark = Constant("\x00", node.span)
        fixed = tuple(mark if each is changing[0] else each for each in node.arguments)
        try:
            text = str(evaluate(node._replace(arguments=fixed), {}))
        except EvaluationError:
            return False
        left, found, right = text.partition("\x00")
        if not found or "\x00" in right:
            raise InexpressibleError(f"{node.name} with a null character")
        source = partial(sets.inside, left, right)
        return self.within(changing[0], TEXT, wanted.through(node.name, source), types)


def constant_within(node: Node, target: str, wanted: Wanted) -> bool:
    """Whether a constant is in a set, after a cast, with no error."""
    try:
        value = cast(evaluate(node, {}), target)
    except EvaluationError:
        return False
    return _contains(wanted, value)


def _contains(wanted: Wanted, value: Value) -> bool:
    if isinstance(wanted, TextSet):
        return wanted.has(str(value))
    if isinstance(wanted, frozenset):
        return value in wanted
    return any(low <= value <= high for low, high in wanted if isinstance(value, int))


def _products(low: int, high: int, by: int) -> Iterator[tuple[int, int]]:
    """The numbers whose product with another is in a range."""
    if by < 0:
        low, high, by = -high, -low, -by
    if by:
        yield -(-low // by), high // by
    elif low <= 0 <= high:
        yield LOWEST, HIGHEST


def _quotients(low: int, high: int, by: int) -> Iterator[tuple[int, int]]:
    """The numbers whose quotient, rounded towards 0, is in a range."""
    if by < 0:
        low, high, by = -high, -low, -by
    if by:
        yield (low * by if low > 0 else (low - 1) * by + 1,
               high * by if high < 0 else (high + 1) * by - 1)  # fmt: skip


_SOURCES: Mapping[tuple[str, bool], Callable[[int, int, int], Iterable[tuple[int, int]]]] = {
    ("+", True): lambda low, high, by: [(low - by, high - by)],
    ("+", False): lambda low, high, by: [(low - by, high - by)],
    ("-", True): lambda low, high, by: [(low + by, high + by)],
    ("-", False): lambda low, high, by: [(by - high, by - low)],
    ("*", True): _products,
    ("*", False): _products,
    ("/", True): _quotients,
}
"""Which numbers an operator turns into a range, by its sign and whether the constant is right."""
