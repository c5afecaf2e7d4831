"""Reads values and arithmetic from tokens, forward only."""

from __future__ import annotations

import re
from decimal import Decimal

from tamis.errors import ConditionError, LimitError, Span
from tamis.language.hints import misplaced_hint, value_expected_hint
from tamis.language.lexer import Token, tokens
from tamis.language.limits import DEPTH_LIMIT, LIST_LIMIT
from tamis.model.condition import (
    OF_KIND,
    SIGNS,
    Arithmetic,
    AttributeValue,
    Constant,
    Duration,
    Expression,
    Now,
    Variable,
    Word,
)
from tamis.model.printer import name_text
from tamis.model.times.durations import read_duration
from tamis.model.times.moments import NOW_WORDS

OPERANDS = frozenset(
    ("variable", "attribute", "number", "duration", "date", "text", "true", "false", "-")
)
"""The tokens that can start an expression, apart from a parenthesis."""
_VALUE = "expected a value: a number, a name, true, false, or text in quotes"


class TokenReader:
    """The tokens of a text, the position, and the depth of nesting."""

    __slots__ = ("at", "depth", "tokens")

    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = tokens(text)
        self.at = 0
        self.depth = 0

    def is_word(self, *words: str) -> bool:
        """Whether the next token is one of these words, without quotes. They are not keywords."""
        kind, word, *_ = self.tokens[self.at]
        return kind == "name" and word.lower() in words

    def constants(self, comparator: str = "in") -> tuple[Constant, ...]:
        """A list in parentheses, after a comparator."""
        opened = self.span()
        if self.tokens[self.at][0] != "(":
            example = "(number, null)" if comparator == OF_KIND else "(1, 2)"
            raise self.error(
                f"expected a list in parentheses after '{comparator}'",
                hint=f"as in: price {comparator} {example}",
            )
        self.at += 1
        values = [self.constant()]
        while self.tokens[self.at][0] == ",":
            self.at += 1
            values.append(self.constant())
        self.expect(")", "expected ',' or ')' in the list")
        if len(values) > LIST_LIMIT:
            raise LimitError(
                f"{len(values):,} values in one list; at most {LIST_LIMIT:,}", span=opened
            )
        return tuple(values)

    def constant(self) -> Constant:
        """One constant."""
        kind, word, start, end = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _number(word, (start, end))
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
            return _number("-" + word, (start, end))
        self.at -= 1
        if "duration" in (kind, self.tokens[self.at + 1][0] if kind == "-" else kind):
            raise self.error(
                "a duration is compared with a difference of times",
                hint="as in: @closes - @opens < 2h; or, for the age of a time: at > now - 2h",
            )
        if kind == "variable":
            raise self.error(
                "an attribute is compared with constants or attributes, not with variables",
                hint="an operator that reads the attribute can bind its value to a variable",
            )
        raise self.error(_VALUE, hint=value_expected_hint(self.tokens, self.at))

    def argument(self) -> Constant | Variable:
        """A constant or a variable."""
        kind, word, *_ = self.tokens[self.at]
        if kind == "variable":
            self.at += 1
            return Variable(word)
        if kind == "attribute":
            raise self.error("an operator reads attributes itself; its arguments are constants")
        if kind not in OPERANDS and kind != "name":
            raise self.error("expected a variable or a value")
        return self.constant()

    def sum(self, first: Expression | None = None) -> Expression:
        """A sum; `first` is its first operand, if it has been read already."""
        left = self._product(first)
        while (kind := self.tokens[self.at][0]) in ("+", "-"):
            self.at += 1
            left = Arithmetic(kind, left, self._product())
        return left

    def _product(self, first: Expression | None = None) -> Expression:
        left = self._signed() if first is None else first
        while (kind := self.tokens[self.at][0]) in ("*", "/"):
            self.at += 1
            left = Arithmetic(kind, left, self._signed())
        return left

    def _signed(self) -> Expression:
        kind, word, *_ = self.tokens[self.at]
        inner: Expression
        if kind == "(":
            self.deeper()
            inner = self.sum()
            self.expect(")", "expected a closing parenthesis")
        elif kind == "-" and self.tokens[self.at + 1][0] not in ("number", "duration"):
            self.deeper()
            inner = Arithmetic("-", 0, self._signed())
        else:
            if kind == "duration" or (kind == "-" and self.tokens[self.at + 1][0] == "duration"):
                return self._duration()
            if kind == "name":
                if self.is_moment():
                    self.at += 1
                    return Now()
                self._check_word(word)
            if kind == "attribute":
                self.at += 1
                return AttributeValue(word)
            return self.argument()
        self.depth -= 1
        return inner

    def is_moment(self) -> bool:
        """Whether the next word is `now` in arithmetic: no other word may be there."""
        _, word, start, end = self.tokens[self.at]
        if word not in NOW_WORDS or end - start > len(word):  # in backquotes
            return False
        before, after = self.tokens[self.at - 1][0], self.tokens[self.at + 1][0]
        return before in SIGNS or after in SIGNS

    def _duration(self) -> Duration:
        """A duration, perhaps with a sign."""
        start = self.span()[0]
        negative = self.tokens[self.at][0] == "-"
        self.at += negative
        _, word, _, end = self.tokens[self.at]
        self.at += 1
        found = read_duration(word)
        if found is None:
            raise ConditionError(
                f"{word[:40]!r} is not a whole number of microseconds in 64 bits", span=(start, end)
            )
        return Duration(-found if negative else found)

    def _check_word(self, word: str) -> None:
        """Refuse a bare word in arithmetic: an attribute or an operator was meant."""
        before, after = self.tokens[self.at - 1][0], self.tokens[self.at + 1][0]
        if after == "(":
            raise self.error(
                "an operator cannot be part of an expression; it can bind variables",
                hint=f"write: {name_text(word)}(…, ?x) and … ?x …",
            )
        if before in SIGNS or after in SIGNS:
            raise self.error(
                f"{word!r} is not a number",
                hint=f"write the value of an attribute as @{name_text(word)}",
            )

    # -- tokens ------------------------------------------------------------------------------------

    def deeper(self) -> None:
        """Skip a token that opens a level of nesting; the caller closes the level."""
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise LimitError(f"nested deeper than {DEPTH_LIMIT} levels", span=self.span())
        self.at += 1

    def expect(self, kind: str, message: str) -> None:
        """Skip a required token."""
        if self.tokens[self.at][0] != kind:
            raise self.error(message, hint=misplaced_hint(self.tokens, self.at))
        self.at += 1

    def span(self) -> Span:
        """The span of the next token."""
        _, _, start, end = self.tokens[self.at]
        return start, end

    def error(self, message: str, hint: str | None = None) -> ConditionError:
        """An error that shows the next token."""
        return ConditionError(message, span=self.span(), hint=hint)


def _number(word: str, span: Span) -> int | float:
    """The number that `word` denotes, exact or refused."""
    digits = word.removeprefix("-")
    if digits.isdigit():
        digits = digits.lstrip("0") or "0"
        # int() of a long text is slow and capped; 20 digits are past 64 bits anyway.
        if len(digits) > 20:
            raise ConditionError(
                "a whole number outside the 64-bit integers (-2^63 to 2^63 - 1)", span=span
            )
        return -int(digits) if word.startswith("-") else int(digits)
    found = float(word)
    if found in (float("inf"), float("-inf")):
        raise ConditionError("a number too large for a double", span=span)
    if found == 0 and re.search("[1-9]", word.lower().partition("e")[0]):
        raise ConditionError("a number too close to 0 for a double; write 0", span=span)
    if len(word) > 15 and found.is_integer() and "e" not in word.lower():
        return _whole(word, found, span)
    return found


def _whole(word: str, found: float, span: Span) -> int | float:
    """A long literal whose double is whole: exact if the literal is whole, otherwise refused.

    `9007199254740993.0` is that integer; `1.0000000000000000001` is not 1.
    """
    exact = Decimal(word)
    if exact == found:
        return found
    if exact == exact.to_integral_value() and abs(exact) < 2**64:
        return int(exact)
    raise ConditionError(f"not exact as a double; the nearest is {found!r}", span=span)
