"""The values in SQL conditions: attributes, constants and arithmetic."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

from sqlglot import exp

from tamis.errors import ConditionError, LimitError, Span, nearest
from tamis.language.dialects.sql_places import TextPlaces
from tamis.language.dialects.sql_refusals import NAMED, refusal
from tamis.language.limits import DEPTH_LIMIT
from tamis.model.condition import COMPUTE, Arithmetic, AttributeValue, Constant, Expression
from tamis.model.domain import Domain, parse_timestamp
from tamis.model.dynamic import Dynamic
from tamis.model.schema import Schema

_SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_CONDITIONS = (exp.Connector, exp.Predicate, exp.Not, exp.Escape)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_OFFSET = re.compile(r"[T ].*[+-](?!00(?::?00)?$)\d\d(?::?\d\d)?$")  # but not that of UTC
_HOURS = re.compile(r"[T ].*[+-]\d\d$")  # an offset as PostgreSQL prints it
_DATES = ("DATE",)
_LOCAL = ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME")
_ZONED = ("TIMESTAMPTZ", "TIMESTAMPLTZ")
_DIGITS = 20  # of a whole number that may be one of 64 bits
_LONGEST = 1000  # characters of a number: exact arithmetic with more is slow
_DYNAMIC = Dynamic()


class SqlValue(NamedTuple):
    """A value: one attribute, arithmetic with attributes, or a constant, which may be NULL."""

    names: tuple[str, ...] = ()  # the attributes in it
    expression: Expression | None = None  # of a constant, too; None for NULL
    number: Fraction | None = None  # exactly, of a constant
    whole: bool = False  # a number without a point, as databases see it
    divides: bool = False  # so that it may have no value
    fraction: bool = False  # surely a number with a point
    time: bool = False  # DATE '…' or TIMESTAMP '…'
    span: Span | None = None

    @property
    def is_null(self) -> bool:
        return self.expression is None

    @property
    def is_attribute(self) -> bool:
        return isinstance(self.expression, AttributeValue)

    @property
    def constant(self) -> Constant:
        """The constant; there is one if no attribute is in it."""
        assert not isinstance(self.expression, Arithmetic | AttributeValue)
        assert self.expression is not None
        return self.expression  # type: ignore[return-value]


def check_offset(text: str, span: Span | None) -> None:
    """Refuse an offset in a time without a zone: some databases ignore it, others do not."""
    if _OFFSET.search(text):
        raise ConditionError(
            "databases read the offset of a TIMESTAMP in different ways",
            span=span,
            hint=f"write TIMESTAMPTZ '{text}', or leave out the offset for UTC",
        )


class SqlValueReader:
    """Reads values; names are those of a schema."""

    def __init__(self, schema: Schema, places: TextPlaces) -> None:
        self._schema, self._places = schema, places

    def domain(self, name: str) -> Domain:
        """The domain of an attribute that was read."""
        if self._schema.is_open:
            return _DYNAMIC
        return self._schema.attributes.get(name, _DYNAMIC)  # one below a list is refused later

    def is_value(self, node: exp.Expr) -> bool:
        """Whether a part is a value rather than a condition."""
        return not isinstance(node.unnest(), _CONDITIONS)

    def value(self, node: exp.Expr, depth: int = 0) -> SqlValue:
        """A value; whatever else SQL has there is refused."""
        if depth > DEPTH_LIMIT:
            raise LimitError(
                f"arithmetic nested deeper than {DEPTH_LIMIT} levels", span=self._places.of(node)
            )
        if isinstance(node, exp.Paren):
            return self.value(node.this, depth + 1)
        if isinstance(node, exp.Column | exp.Dot):
            return self._attribute(node)
        if isinstance(node, exp.Null):
            return SqlValue()
        if isinstance(node, exp.Boolean):
            return SqlValue(expression=bool(node.this))
        if isinstance(node, exp.Literal):
            span = self._places.of(node)
            if node.is_string:
                return SqlValue(expression=str(node.this), span=span)
            return self._number(str(node.this), span)
        if type(node) is exp.Cast:
            return self._time(node)
        if isinstance(node, exp.Neg):
            zero = SqlValue(expression=0, number=Fraction(0), whole=True)
            return self._computed("-", zero, self.value(node.this, depth + 1), node)
        if type(node) in _SIGNS:
            left, right = (self.value(each, depth + 1) for each in (node.this, node.expression))
            return self._computed(_SIGNS[type(node)], left, right, node)
        if isinstance(node, _CONDITIONS) and type(node) not in NAMED:
            raise ConditionError(
                "a condition is not a value here",
                span=self._places.of(node),
                hint="join comparisons with AND; use parentheses around one before IS",
            )
        raise refusal(node, self._places.of(node))

    # -- attributes ----------------------------------------------------------------------------

    def _attribute(self, node: exp.Expr) -> SqlValue:
        """An attribute; parts of a name are joined by dots."""
        span, parts = self._places.of(node), []
        for part in node.parts:  # type: ignore[attr-defined]
            name = str(part.this)
            if not isinstance(part, exp.Identifier):
                raise refusal(part, span)
            if not part.args.get("quoted") and not _PLAIN_NAME.fullmatch(name):
                raise ConditionError(
                    f"{name!r} is no name",
                    span=span,
                    hint="a name with other characters is written in double quotes; a condition "
                    "has no parameters",
                )
            parts.append(name)
        if isinstance(node, exp.Column) and node.args.get("join_mark"):
            raise ConditionError("the mark (+) of a join cannot be translated", span=span)
        name = ".".join(parts)
        if not self._schema.is_open and name not in self._schema.attributes:
            self._refuse_name(name, node, span)
        fraction = self.domain(name).kind == "decimal"
        whole = self.domain(name).kind == "integer"
        return SqlValue((name,), AttributeValue(name), whole=whole, fraction=fraction, span=span)

    def _refuse_name(self, name: str, node: exp.Expr, span: Span | None) -> None:
        """Refuse an unknown name here: a part that is never true would not be looked at later."""
        if any(name.startswith(f"{each}.") for each in self._schema.lists):
            return  # elements of a list: the type check says what to write
        alike = [each for each in self._schema.attributes if each.lower() == name.lower()]
        hint = nearest(name, self._schema.attributes)
        if alike:
            hint = f"names are case-sensitive: did you mean {alike[0]!r}?"
        elif node.name and node.this.args.get("quoted") and not (hint or "").startswith("did"):
            hint = f"double quotes are for names; a text is written '{name}'"
        raise ConditionError(f"unknown attribute {name!r}", span=span, hint=hint)

    # -- constants -----------------------------------------------------------------------------

    def _number(self, text: str, span: Span | None) -> SqlValue:
        if len(text) > _LONGEST:
            raise ConditionError(f"a number of more than {_LONGEST:,} characters", span=span)
        whole = text.isascii() and text.isdigit()
        if whole and len(text.lstrip("0")) > _DIGITS:
            raise ConditionError("a number outside the 64-bit integers", span=span)
        try:
            real = 0.0 if whole else float(text)
        except ValueError:
            raise ConditionError(f"{text!r:.60} is no number", span=span) from None
        # Neither may be: the exact number would have millions of digits.
        digits = text.lower().partition("e")[0]
        if not isfinite(real) or (not whole and not real and digits.strip("0.")):
            raise ConditionError("a number outside the doubles", span=span)
        exact = Fraction(text) if whole or real else Fraction(0)  # whatever the exponent of 0 is
        if "e" in text.lower() and real.is_integer():
            exact = Fraction(real)  # a number with an exponent is a double, such as 1e300
        return self._exact(exact, whole, span)

    def _exact(self, number: Fraction, whole: bool, span: Span | None) -> SqlValue:
        """A number: whole, or the double that is nearest to it."""
        if whole:
            return SqlValue((), int(number), number, whole=True, span=span)
        try:
            real = float(number)
        except OverflowError:
            raise ConditionError("a number outside the doubles", span=span) from None
        if real.is_integer() and real != number:
            raise ConditionError(
                f"the number has more digits than a double; the nearest is {real!r}", span=span
            )
        return SqlValue((), real, number, fraction=True, span=span)

    def _time(self, node: exp.Cast) -> SqlValue:
        """DATE '…' and TIMESTAMP '…', also written as a cast of a text."""
        span, kind = self._places.of(node), node.to.this
        named = str(getattr(kind, "value", kind)).upper()
        literal = isinstance(node.this, exp.Literal) and node.this.is_string
        known = named in (*_DATES, *_LOCAL, *_ZONED)
        if not literal or not known or node.to.expressions or node.args.get("format"):
            raise refusal(node, span)
        text = _HOURS.sub(r"\g<0>:00", str(node.this.this))
        if named in _DATES and not _DATE.fullmatch(text):
            raise ConditionError(
                f"{text!r:.60} is no date", span=span, hint="write a date as DATE '2026-01-31'"
            )
        if named in _LOCAL:
            check_offset(text, span)
        moment = parse_timestamp(text)
        if isinstance(moment, str):
            raise ConditionError(f"{text!r:.60} {moment}", span=span)
        return SqlValue(expression=text, time=True, span=span)

    # -- arithmetic ----------------------------------------------------------------------------

    def _computed(self, sign: str, left: SqlValue, right: SqlValue, node: exp.Expr) -> SqlValue:
        span = self._places.of(node)
        if left.is_null or right.is_null:
            return SqlValue(span=span)
        for side in (left, right):
            if not side.names and side.number is None:
                raise ConditionError(
                    "arithmetic takes numbers",
                    span=side.span or span,
                    hint="put no number in quotes",
                )
        if sign == "/" and not left.fraction and not right.fraction:
            raise ConditionError(
                "databases divide whole numbers in different ways",
                span=span,
                hint="make one a decimal, as in: 1.0 * a / b",
            )
        whole = left.whole and right.whole and sign != "/"
        if left.number is not None and right.number is not None:
            if sign == "/" and not right.number:
                raise ConditionError("a division by zero", span=span)
            return self._exact(COMPUTE[sign](left.number, right.number), whole, span)
        assert left.expression is not None
        assert right.expression is not None
        return SqlValue(
            (*left.names, *right.names),
            Arithmetic(sign, left.expression, right.expression),
            whole=whole,
            fraction=sign == "/" or left.fraction or right.fraction,
            divides=sign == "/" or left.divides or right.divides,
            span=span,
        )
