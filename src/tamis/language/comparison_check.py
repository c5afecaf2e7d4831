"""The type check of comparisons between attributes, such as `sold_price < 2 * @reserve_price`."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.errors import ConditionError, nearest
from tamis.language import spans
from tamis.language.constants import check_constant, kind_of_constant, kind_text
from tamis.language.element_check import list_of
from tamis.model.condition import (
    COMPLEMENTS,
    SIGNS,
    Arithmetic,
    AttributeValue,
    Comparison,
    Constant,
    Duration,
    Expression,
    Now,
    Operand,
    Variable,
    Word,
    operands,
)
from tamis.model.domain import Domain, RefusalError, show
from tamis.model.printer import expression_text, name_text
from tamis.model.schema import Schema
from tamis.model.times.durations import UNITS

_NUMBERS = ("integer", "decimal")
DYNAMIC, TIMESTAMP, DURATION = "dynamic", "timestamp", "duration"
_OF_TIME = frozenset((TIMESTAMP, DURATION))
_DECLARE = "a dynamic attribute has no times: declare it as a timestamp in a schema"


def check_comparison(
    comparison: Comparison,
    schema: Schema,
    attributes: Mapping[str, Domain],
    text: str | None,
    stem: str = "",
) -> None:
    """Refuse unknown attributes, values of two kinds, and comparators that a kind lacks.

    In the text, names of attributes begin with the stem.
    """
    _ComparisonCheck(comparison, schema, attributes, text, stem).check()


class _ComparisonCheck:
    def __init__(
        self,
        comparison: Comparison,
        schema: Schema,
        attributes: Mapping[str, Domain],
        text: str | None,
        stem: str,
    ) -> None:
        self.comparison, self.attributes, self.text = comparison, attributes, text
        self.schema, self.stem = schema, stem
        self.words = {} if schema.is_open else attributes  # that are in doubt

    def check(self) -> None:
        comparison = self.comparison
        if comparison.comparator not in COMPLEMENTS:
            raise ConditionError(
                f"attributes are not compared by {show(comparison.comparator)}",
                span=comparison.span,
                hint="use one of: " + " ".join(COMPLEMENTS),
            )
        left, right = self._kind(comparison.left), self._kind(comparison.right)
        if DYNAMIC in (left, right):
            self._check_dynamic(left, right)
            return
        if left != right:
            if {left, right} <= _OF_TIME or {left, right} & {DURATION}:
                raise self._times_differ(left, right)
            other = " of another domain" if _shown(left) == _shown(right) else ""
            raise ConditionError(
                f"{expression_text(comparison.left)} is {_shown(left)}, "
                f"but {expression_text(comparison.right)} is {_shown(right)}{other}",
                span=comparison.span,
            )
        if isinstance(left, Domain):
            known: tuple[str, ...] = tuple(each for each in COMPLEMENTS if each in left.comparators)
        else:
            known = ("=", "!=") if left == "boolean" else tuple(COMPLEMENTS)
        if comparison.comparator not in known:
            raise ConditionError(
                f"{_shown(left)} has no comparator {comparison.comparator!r}",
                span=comparison.span,
                hint="it has: " + " ".join(known),
            )

    def _check_dynamic(self, left: str | Domain, right: str | Domain) -> None:
        """The kinds of values are compared when an event comes; only numbers, text and booleans."""
        for kind in (left, right):
            if kind not in (DYNAMIC, "number", "text", "boolean"):
                raise ConditionError(
                    f"{_shown(kind)} is not compared with a dynamic attribute",
                    span=self.comparison.span,
                    hint=_DECLARE if kind in _OF_TIME else None,
                )

    def _kind(self, expression: Expression) -> str | Domain:
        """number, text, boolean or timestamp; or the domain, if it is one of names."""
        if isinstance(expression, AttributeValue):
            return self._attribute(expression)
        if isinstance(expression, Arithmetic):
            if expression.sign not in SIGNS:
                raise ConditionError(f"{show(expression.sign)} is not one of + - * /")
            kinds = self._kind(expression.left), self._kind(expression.right)
            if not _OF_TIME.isdisjoint(kinds):
                return self._of_times(expression, *kinds)
            for side, kind in zip((expression.left, expression.right), kinds, strict=True):
                if kind not in ("number", DYNAMIC):
                    raise ConditionError(
                        f"{expression_text(side)} is {_shown(kind)}; arithmetic takes numbers",
                        span=self.comparison.span,
                    )
            return "number"
        if isinstance(expression, Now | Duration):
            return TIMESTAMP if isinstance(expression, Now) else DURATION
        if isinstance(expression, Variable):
            raise ConditionError(
                "a variable cannot be compared with an attribute", span=self.comparison.span
            )
        return self._constant(expression)

    def _of_times(self, sum: Arithmetic, left: str | Domain, right: str | Domain) -> str:
        """The kind of arithmetic on times; refuses what has no meaning."""
        if sum.sign in ("+", "-") and DURATION in (left, right):
            if (type(sum.left), sum.left, sum.sign) == (int, 0, "-"):
                return DURATION  # the duration with another sign
            if left == right:
                return DURATION
            if (left, right) == (TIMESTAMP, DURATION):
                return TIMESTAMP
            if (left, sum.sign, right) == (DURATION, "+", TIMESTAMP):
                return TIMESTAMP
        if (left, sum.sign, right) == (TIMESTAMP, "-", TIMESTAMP):
            return DURATION
        if sum.sign in ("*", "/"):
            hint = "a duration has no factor: write the product, as in 90min"
        elif "number" in (left, right):
            hint = "a duration has a unit, as in 30min; units: " + " ".join(UNITS)
        elif DYNAMIC in (left, right):
            hint = _DECLARE
        elif "text" in (left, right):
            hint = "in arithmetic, times are attributes and now"
        else:
            hint = "a time minus a time is a duration; a time plus or minus a duration is a time"
        raise ConditionError(
            f"{expression_text(sum)} is {_shown(left)} {sum.sign} {_shown(right)}, "
            "which has no meaning",
            span=self.comparison.span,
            hint=hint,
        )

    def _times_differ(self, left: str | Domain, right: str | Domain) -> ConditionError:
        """The error for a duration that is compared with something else, or a time with `now`."""
        sides = self.comparison.left, self.comparison.right
        hint = "a duration is compared with a duration, as in: @closes - @opens < 2h"
        if any(self._is_dynamic(each) for each in operands(self.comparison)):
            hint = _DECLARE
        elif "number" in (left, right):
            hint = "a duration has a unit, as in 30min; units: " + " ".join(UNITS)
        return ConditionError(
            f"{expression_text(sides[0])} is {_shown(left)}, "
            f"but {expression_text(sides[1])} is {_shown(right)}",
            span=self.comparison.span,
            hint=hint,
        )

    def _is_dynamic(self, operand: Operand) -> bool:
        domain = self.attributes.get(operand.name) if isinstance(operand, AttributeValue) else None
        return domain is not None and domain.kind == DYNAMIC

    def _attribute(self, value: AttributeValue) -> str | Domain:
        domain = self.attributes.get(value.name)
        span = spans.operand(self.text, self.comparison, value)
        if (found := list_of(value.name, self.schema)) is not None:
            raise ConditionError(
                f"{self.stem + found[0]!r} is a list of structs: elements would be mixed",
                span=span,
                hint="attributes of one element are compared as in: some item in "
                f"{name_text(self.stem + found[0])} (item.… = @item.…)",
            )
        if domain is None:
            raise ConditionError(
                f"unknown attribute {self.stem + value.name!r}",
                span=span,
                hint=nearest(value.name, self.attributes),
            )
        if domain.kind in _NUMBERS:
            return "number"
        if domain.kind in ("text", "boolean", "timestamp", DYNAMIC):
            return domain.kind
        if "=" not in domain.comparators:
            raise ConditionError(
                f"{self.stem + value.name!r} is {domain.kind} and cannot be compared", span=span
            )
        return domain

    def _constant(self, value: Constant) -> str:
        if isinstance(value, Word) and value in self.words:
            raise ConditionError(
                f"{str(value)!r} is an attribute",
                span=spans.operand(self.text, self.comparison, value),
                hint=f'write @{value} for its value, or "{value}" for the text',
            )
        try:
            check_constant(value, "any")
        except RefusalError as why:
            raise ConditionError(f"in a comparison: {why}", span=self.comparison.span) from None
        return kind_of_constant(value)


def _shown(kind: str | Domain) -> str:
    return kind.kind if isinstance(kind, Domain) else kind_text(kind)
