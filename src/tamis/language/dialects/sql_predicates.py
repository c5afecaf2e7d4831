"""The predicates of SQL: comparisons, lists, ranges and patterns."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from tamis.errors import ConditionError, LimitError, Span
from tamis.language.constants import kind_of_constant
from tamis.language.dialects.sql_places import TextPlaces
from tamis.language.dialects.sql_refusals import refusal
from tamis.language.dialects.sql_truth import (
    FALSE,
    TRUE,
    UNKNOWN,
    Made,
    Test,
    conjunction,
    constant,
    disjunction,
    every,
    leaf,
    negation,
    one_of,
    two_valued,
)
from tamis.language.dialects.sql_values import SqlValue, SqlValueReader, check_offset
from tamis.language.limits import PREDICATE_LIMIT
from tamis.model.condition import (
    IGNORING_CASE,
    IS_NULL,
    OF_KIND,
    ORDER,
    Comparison,
    Condition,
    Not,
    Predicate,
    Value,
    Word,
)

_COMPARATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NAMED = ("enumerated", "hierarchy")  # domains whose order is not that of texts


class SqlPredicates:
    """Reads what has no conditions in it."""

    def __init__(self, values: SqlValueReader, places: TextPlaces) -> None:
        self._values, self._places, self._made = values, places, 0

    def test(self, node: exp.Expr) -> Test:
        """A predicate, or a boolean attribute."""
        if type(node) in _COMPARATORS:
            left, right = self._values.value(node.this), self._values.value(node.expression)
            return self._compare(left, _COMPARATORS[type(node)], right, node)
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Like | exp.ILike | exp.Escape):
            return self._like(node)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            same = self._same(node)
            return same if isinstance(node, exp.NullSafeEQ) else negation(same)
        return self._boolean(self._values.value(node), node)

    # -- leaves --------------------------------------------------------------------------------

    def _predicate(self, value: SqlValue, comparator: str, given: Value, node: exp.Expr) -> Test:
        """A predicate of tamis. It is unknown if the attribute is absent, or of another kind."""
        (name,) = value.names
        span = self._place(node)
        domain = self._values.domain(name)
        if domain.kind in _NAMED and comparator in ORDER:
            raise ConditionError(
                f"{name!r} is {domain.kind}: its order is not that of texts, as in SQL",
                span=span,
                hint=f"write {name} IN ('…', '…'); the language of tamis has this order",
            )

        def unknown() -> Made:
            absent = self._null(name, node)
            if domain.kind != "dynamic":
                return absent
            listed = given if isinstance(given, tuple) else (given,)
            kinds = dict.fromkeys(
                Word(kind_of_constant(each)) for each in listed if each is not None
            )
            return one_of([absent, Not(Predicate(name, OF_KIND, tuple(kinds), span))])

        return self.counted(leaf(Predicate(name, comparator, given, span), unknown))

    def _comparison(self, left: SqlValue, comparator: str, right: SqlValue, node: exp.Expr) -> Test:
        names = tuple(dict.fromkeys((*left.names, *right.names)))
        assert left.expression is not None
        assert right.expression is not None
        for name in names:
            kind = self._values.domain(name).kind
            if kind in _NAMED and comparator not in ("=", "!="):
                raise ConditionError(
                    f"{name!r} is {kind}: its order is not that of texts, as in SQL",
                    span=self._place(node),
                )
        condition = Comparison(left.expression, comparator, right.expression, self._place(node))

        def unknown() -> Made:
            dynamic = any(self._values.domain(name).kind == "dynamic" for name in names)
            if dynamic or left.divides or right.divides:
                why = "a division" if left.divides or right.divides else "dynamic attributes"
                raise ConditionError(
                    f"whether a comparison with {why} is unknown cannot be translated",
                    span=self._place(node),
                    hint="ask whether its attributes are NULL",
                )
            return one_of([self._null(name, node) for name in names])

        return self.counted(leaf(condition, unknown))

    def counted(self, made: Test) -> Test:
        """Every predicate and constant that is asked for counts: IS UNKNOWN asks many times."""

        def test(wanted: object) -> Made:
            self._made += 1
            if self._made > PREDICATE_LIMIT:
                raise LimitError(f"more than {PREDICATE_LIMIT:,} predicates")
            return made(wanted)  # type: ignore[arg-type]

        return test

    def _null(self, name: str, node: exp.Expr) -> Condition:
        return Predicate(name, IS_NULL, None, self._place(node))

    def _place(self, node: exp.Expr) -> Span | None:
        return self._places.of(node)

    # -- predicates ----------------------------------------------------------------------------

    def _boolean(self, value: SqlValue, node: exp.Expr) -> Test:
        """A boolean attribute alone."""
        kind = self._values.domain(value.names[0]).kind if value.is_attribute else ""
        if kind not in ("boolean", "dynamic"):
            raise ConditionError(
                f"{value.names[0]!r} is {kind}, and no condition" if kind else "no condition",
                span=self._place(node),
                hint="compare it, as in: price < 5",
            )
        return self._predicate(value, "=", True, node)

    def _compare(self, left: SqlValue, comparator: str, right: SqlValue, node: exp.Expr) -> Test:
        if left.is_null or right.is_null:
            return constant(None)
        if not left.names and not right.names:
            return constant(self._compared(left, comparator, right, node))
        if not left.names:
            left, comparator, right = right, _MIRRORED.get(comparator, comparator), left
        self._check_times((left, right), node)
        if left.is_attribute and not right.names:
            return self._predicate(left, comparator, right.constant, node)
        return self._comparison(left, comparator, right, node)

    def _compared(self, left: SqlValue, comparator: str, right: SqlValue, node: exp.Expr) -> bool:
        """A comparison of two constants, such as 1 = 1."""
        one, other = left.constant, right.constant
        if left.number is not None and right.number is not None:
            one, other = left.number, right.number  # type: ignore[assignment]
        elif kind_of_constant(one) != kind_of_constant(other) or left.time or right.time:
            raise ConditionError("constants of two kinds, or of time", span=self._place(node))
        below, same = one < other, one == other  # type: ignore[operator]
        return {
            "=": same,
            "!=": not same,
            "<": below,
            "<=": below or same,
            ">": not below and not same,
            ">=": not below,
        }[comparator]

    def _check_times(self, values: Iterable[SqlValue], node: exp.Expr) -> None:
        """Refuse a time where no attribute is one: it would be compared as a text.

        A text that is compared with a time is a TIMESTAMP to databases.
        """
        values = [*values]
        kinds = [self._values.domain(name).kind for value in values for name in value.names]
        for value in values if "timestamp" in kinds else ():
            if isinstance(value.expression, str) and not value.time:
                check_offset(value.expression, value.span)
        for kind in kinds if any(value.time for value in values) else ():
            if kind != "timestamp":
                raise ConditionError(
                    f"a time is compared with an attribute that is {kind}",
                    span=self._place(node),
                    hint="declare the attribute as timestamp; texts compare as '2026-01-31'",
                )

    def _between(self, node: exp.Between) -> Test:
        if node.args.get("symmetric"):
            raise ConditionError(
                "SYMMETRIC cannot be translated",
                span=self._place(node),
                hint="write the lower end first",
            )
        value, low, high = (
            self._values.value(each) for each in (node.this, node.args["low"], node.args["high"])
        )
        plain = value.is_attribute and not any(each.is_null or each.names for each in (low, high))
        if not plain:
            ends = self._compare(value, ">=", low, node), self._compare(value, "<=", high, node)
            return conjunction(ends)
        self._check_times((value, low, high), node)
        return self._predicate(value, "between", (low.constant, high.constant), node)

    def _in(self, node: exp.In) -> Test:
        if node.args.get("query"):
            raise refusal(node.args["query"], self._place(node))
        items = node.expressions
        if not items or node.args.get("field"):
            raise ConditionError(
                "IN takes a list of values", span=self._place(node), hint="as in: x IN (1, 2)"
            )
        value = self._values.value(node.this)
        found = [self._values.value(item) for item in items]
        plain = [item for item in found if not item.is_null and not item.names]
        if not value.is_attribute:
            return disjunction([self._compare(value, "=", item, node) for item in found])
        parts: list[Test] = []
        if plain:
            self._check_times((value, *plain), node)
            constants = tuple(item.constant for item in plain)
            parts.append(self._predicate(value, "in", constants, node))
        parts += [
            self._compare(value, "=", item, node) for item in found if item.is_null or item.names
        ]
        return parts[0] if len(parts) == 1 else disjunction(parts)

    def _like(self, node: exp.Expr) -> Test:
        like, escape = node, None
        if isinstance(node, exp.Escape):
            like, escape = node.this, self._values.value(node.expression)
        if not isinstance(like, exp.Like | exp.ILike):
            raise refusal(like, self._place(node))
        value, pattern = self._values.value(like.this), self._values.value(like.expression)
        test = self._matches(value, pattern, escape, isinstance(like, exp.ILike), node)
        return negation(test) if like.args.get("negate") else test

    def _matches(
        self,
        value: SqlValue,
        pattern: SqlValue,
        escape: SqlValue | None,
        fold: bool,
        node: exp.Expr,
    ) -> Test:
        span = self._place(node)
        given, mark = pattern.expression, "" if escape is None else escape.expression
        if value.is_null or given is None or mark is None:
            return constant(None)
        if not isinstance(given, str) or pattern.time or not value.is_attribute:
            raise ConditionError(
                "LIKE compares an attribute with a text", span=span, hint="as in: x LIKE 'oak%'"
            )
        if not isinstance(mark, str) or len(mark) > 1:
            raise ConditionError("ESCAPE takes one character, or none", span=span)
        if escape is None and "\\" in given:
            raise ConditionError(
                "databases read a backslash in a pattern in different ways",
                span=span,
                hint="add ESCAPE '\\' if it takes the next character literally, or else ESCAPE ''",
            )
        comparator = "like" + (IGNORING_CASE if fold else "")
        return self._predicate(value, comparator, _pattern(given, mark, span), node)

    # -- NULL ----------------------------------------------------------------------------------

    def is_null(self, value: SqlValue, node: exp.Expr) -> Test:
        """Whether a value is NULL, which is never unknown."""
        if value.divides:
            raise ConditionError(
                "whether a division is NULL cannot be translated",
                span=self._place(node),
                hint="ask whether its attributes are NULL",
            )
        if value.is_null or not value.names:
            return constant(value.is_null)
        nulls = [self._null(name, node) for name in dict.fromkeys(value.names)]
        return two_valued(lambda: one_of(nulls), lambda: every([Not(each) for each in nulls]))

    def _same(self, node: exp.Expr) -> Test:
        """IS NOT DISTINCT FROM: equal, or both NULL."""
        both = [self._values.value(each) for each in (node.this, node.expression)]
        left, right = (self.is_null(each, node) for each in both)
        if both[0].is_null:
            return right
        if both[1].is_null:
            return left
        equal = self._compare(both[0], "=", both[1], node)
        return two_valued(
            lambda: one_of([equal(TRUE), conjunction([left, right])(TRUE)]),
            lambda: every([equal(FALSE | UNKNOWN), conjunction([left, right])(FALSE)]),
        )


def _pattern(given: str, mark: str, span: Span | None) -> str:
    """A pattern whose escapes are backslashes, as in tamis."""
    found, at = "", 0
    while at < len(given):
        character = given[at]
        at += 1
        if character == mark:
            if at == len(given):
                raise ConditionError("the pattern ends in its ESCAPE character", span=span)
            character = given[at]
            at += 1
            found += f"\\{character}" if character in "%_\\" else character
        else:
            found += "\\\\" if character == "\\" else character
    return found
