"""Tokens to conditions, by recursive descent.

    condition   = conjunction { "or" conjunction }
    conjunction = unary { "and" unary }
    unary       = "not" unary | "(" condition ")" | predicate
    predicate   = name comparator constants

Limits on length and nesting are checked before any work that grows with them.
"""

from __future__ import annotations

from decimal import Decimal

from tamis.errors import ConditionError, LimitError, SchemaError, Span, nearest
from tamis.language.check import check
from tamis.language.lexer import Token, tokens
from tamis.language.limits import DEPTH_LIMIT, LIST_LIMIT, TEXT_LIMIT
from tamis.model.condition import And, Condition, Constant, Not, Or, Predicate, Word
from tamis.model.schema import Schema

_SIMPLE = frozenset(("=", "!=", "<", "<=", ">", ">=", "like", "contains", "excludes"))
_VALUE = "expected a value: a number, a name, true, false, or text in quotes"


def parse(text: str, schema: Schema | None = None, *, limit: int | None = TEXT_LIMIT) -> Condition:
    """The condition that `text` says, type-checked where a schema is given.

    A text of more than `limit` bytes is refused; None reads any, for what was accepted before.

    >>> parse("price < 5 and category <= toy")
    And(parts=(Predicate(attribute='price', comparator='<', value=5), \
Predicate(attribute='category', comparator='<=', value='toy')))
    """
    if not isinstance(text, str):
        raise ConditionError(f"a condition is text, got {type(text).__name__}")
    if schema is not None and not isinstance(schema, Schema):
        raise SchemaError(f"expected a Schema, got {type(schema).__name__}")
    if limit is not None and (len(text) > limit or (not text.isascii() and _bytes(text) > limit)):
        raise LimitError(
            f"the condition is {len(text):,} characters long; at most {limit:,} bytes are read"
        )
    condition = _Parser(text).whole()
    if schema is not None:
        check(condition, schema, text)
    return condition


def _bytes(text: str) -> int:
    # A lone surrogate has no UTF-8 form; it is refused later, where its place is known.
    return len(text.encode("utf-8", "surrogatepass"))


class _Parser:
    __slots__ = ("at", "depth", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = tokens(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> Condition:
        if self.tokens[0][0] == "end":
            raise self._error(
                "the condition is empty", hint="to match every event, write: event_type exists"
            )
        condition = self._condition()
        kind, word, *_ = self.tokens[self.at]
        if kind != "end":
            message = (
                "this closing parenthesis has no opening one"
                if kind == ")"
                else (f"expected 'and' or 'or' before {word!r}")
            )
            raise self._error(message)
        return condition

    def _condition(self) -> Condition:
        first = self._conjunction()
        if self.tokens[self.at][0] != "or":
            return first
        parts = [first]
        while self.tokens[self.at][0] == "or":
            self.at += 1
            parts.append(self._conjunction())
        return Or(tuple(parts))

    def _conjunction(self) -> Condition:
        first = self._unary()
        if self.tokens[self.at][0] != "and":
            return first
        parts = [first]
        while self.tokens[self.at][0] == "and":
            self.at += 1
            parts.append(self._unary())
        return And(tuple(parts))

    def _unary(self) -> Condition:
        kind = self.tokens[self.at][0]
        if kind == "name":
            return self._predicate()
        if kind not in ("not", "("):
            raise self._error("expected a predicate, such as: price < 5")
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise LimitError(
                f"nested deeper than {DEPTH_LIMIT} levels", span=self._span(), text=self.text
            )
        self.at += 1
        if kind == "not":
            inner: Condition = Not(self._unary())
        else:
            inner = self._condition()
            self._expect(")", "expected a closing parenthesis")
        self.depth -= 1
        return inner

    def _predicate(self) -> Condition:
        _, name, start, _ = self.tokens[self.at]
        self.at += 1
        kind = self.tokens[self.at][0]
        if kind == "not":  # `x not in (…)`
            self.at += 1
            kind = self.tokens[self.at][0]
            if kind in ("in", "between", "like", "contains", "starts", "ends"):
                return Not(self._comparison(name, start, kind))
            raise self._error("after a name, 'not' is followed by in, between, like or contains")
        return self._comparison(name, start, kind)

    def _comparison(self, name: str, start: int, kind: str) -> Predicate:
        if kind in _SIMPLE:
            self.at += 1
            value = self._constant()
            return Predicate(name, kind, value, (start, self.tokens[self.at - 1][3]))
        if kind in ("exists", "missing"):
            self.at += 1
            return Predicate(name, kind, None, (start, self.tokens[self.at - 1][3]))
        if kind == "in":
            self.at += 1
            values = self._list()
            return Predicate(name, kind, values, (start, self.tokens[self.at - 1][3]))
        if kind == "between":
            self.at += 1
            low = self._constant()
            self._expect("and", "expected 'and' between the two bounds")
            high = self._constant()
            return Predicate(name, kind, (low, high), (start, self.tokens[self.at - 1][3]))
        if kind in ("starts", "ends"):
            self.at += 1
            self._expect("with", f"expected 'with' after '{kind}'")
            value = self._constant()
            return Predicate(name, f"{kind} with", value, (start, self.tokens[self.at - 1][3]))
        if kind == "(":
            raise ConditionError(
                f"unknown operator {name!r}: no operator is registered",
                span=(start, start + len(name)),
                text=self.text,
            )
        word = self.tokens[self.at][1]
        raise self._error(
            f"expected a comparator after {name!r}",
            hint=nearest(word, ("contains", "excludes", "exists", "missing", "between", "like"))
            or "comparators: = != < <= > >= in between exists missing contains excludes "
            "like, starts with, ends with",
        )

    def _list(self) -> tuple[Constant, ...]:
        opened = self._span()
        self._expect("(", "expected a list in parentheses after 'in'")
        values = [self._constant()]
        while self.tokens[self.at][0] == ",":
            self.at += 1
            values.append(self._constant())
        self._expect(")", "expected ',' or ')' in the list")
        if len(values) > LIST_LIMIT:
            raise LimitError(
                f"{len(values):,} values in one list; at most {LIST_LIMIT:,}",
                span=opened,
                text=self.text,
            )
        return tuple(values)

    def _constant(self) -> Constant:
        kind, word, start, end = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return self._number(word, (start, end))
        if kind in ("name", "date"):
            return Word(word)
        if kind == "text":
            return word
        if kind == "true":
            return True
        if kind == "false":
            return False
        if kind == "-" and self.tokens[self.at][0] == "number":
            _, word, _, end = self.tokens[self.at]
            self.at += 1
            return self._number("-" + word, (start, end))
        self.at -= 1
        raise self._error(_VALUE)

    def _number(self, word: str, span: Span) -> int | float:
        digits = word.removeprefix("-")
        if digits.isdigit():
            digits = digits.lstrip("0") or "0"
            # int() of a long text is slow and capped; 20 digits are past 64 bits anyway.
            if len(digits) > 20:
                raise ConditionError(
                    "a whole number outside the 64-bit integers (-2^63 to 2^63 - 1)",
                    span=span,
                    text=self.text,
                )
            return -int(digits) if word.startswith("-") else int(digits)
        number = float(word)
        if number in (float("inf"), float("-inf")):
            raise ConditionError("a number too large for a double", span=span, text=self.text)
        if len(word) > 15 and number.is_integer() and "e" not in word.lower():
            return self._whole(word, number, span)
        return number

    def _whole(self, word: str, number: float, span: Span) -> int | float:
        """A long literal whose double is whole: exact where it is whole itself, else refused.

        `9007199254740993.0` is that integer; `1.0000000000000000001` is not 1.
        """
        exact = Decimal(word)
        if exact == number:
            return number
        if exact == exact.to_integral_value() and abs(exact) < 2**64:
            return int(exact)
        raise ConditionError(
            f"no double is that exact; the nearest is {number!r}", span=span, text=self.text
        )

    def _expect(self, kind: str, message: str) -> None:
        if self.tokens[self.at][0] != kind:
            raise self._error(message)
        self.at += 1

    def _span(self) -> Span:
        _, _, start, end = self.tokens[self.at]
        return start, end

    def _error(self, message: str, hint: str | None = None) -> ConditionError:
        return ConditionError(message, span=self._span(), text=self.text, hint=hint)
