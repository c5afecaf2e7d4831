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
    Expression,
    Variable,
    Word,
)
from tamis.model.domain import Domain, RefusalError, show
from tamis.model.printer import expression_text, name_text
from tamis.model.schema import Schema

_NUMBERS = ("integer", "decimal")
DYNAMIC = "dynamic"


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
                )

    def _kind(self, expression: Expression) -> str | Domain:
        """number, text, boolean or timestamp; or the domain, if it is one of names."""
        if isinstance(expression, AttributeValue):
            return self._attribute(expression)
        if isinstance(expression, Arithmetic):
            if expression.sign not in SIGNS:
                raise ConditionError(f"{show(expression.sign)} is not one of + - * /")
            for side in (expression.left, expression.right):
                kind = self._kind(side)
                if kind not in ("number", DYNAMIC):
                    raise ConditionError(
                        f"{expression_text(side)} is {_shown(kind)}; arithmetic takes numbers",
                        span=self.comparison.span,
                    )
            return "number"
        if isinstance(expression, Variable):
            raise ConditionError(
                "a variable cannot be compared with an attribute", span=self.comparison.span
            )
        return self._constant(expression)

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
