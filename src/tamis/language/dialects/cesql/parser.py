"""The syntax of CESQL: text to an expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tamis.errors import ConditionError, LimitError, Span, nearest
from tamis.language.dialects.cesql.values import (
    FUNCTIONS,
    HIGHEST,
    Applied,
    Attribute,
    Constant,
    Exists,
    Node,
    function,
)
from tamis.language.limits import DEPTH_LIMIT

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
      | (?P<word>[A-Za-z0-9_]+)
      | (?P<sign>!=|<>|<=|>=|[-+*/%=<>(),])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_RESERVED = ("AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE")
_NAME = re.compile(r"[a-zA-Z0-9]+")
_LEVELS = {
    **dict.fromkeys(("=", "!=", "<>", "<=", ">=", "<", ">"), 0),
    **dict.fromkeys("+-", 1),
    **dict.fromkeys("*/%", 2),
}
_LOGIC = ("AND", "OR", "XOR")


class CesqlToken(NamedTuple):
    """A part of the text. Words are in upper case."""

    kind: str
    word: str
    span: Span


def parse(text: str) -> Node:
    """The expression in a text; a `ConditionError` shows where it is not an expression."""
    parser = _CesqlParser(text, _tokens(text))
    node = parser.logic(0)
    parser.expect("", "an operator or the end")
    return node


def _tokens(text: str) -> list[CesqlToken]:
    found: list[CesqlToken] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:]
            at += len(rest) - len(rest.lstrip(" \t\r\n"))
            quoted = text[at] in "'\""
            raise ConditionError(
                f"the quote {text[at]} is never closed" if quoted else f"unexpected {text[at]!r}",
                span=(at, at + 1),
                hint=f"inside, a quote is written \\{text[at]}" if quoted else None,
            )
        kind = match.lastgroup or ""
        word = match[kind]
        if kind == "text" and found and found[-1].kind == "text" and found[-1].span[1] == at:
            raise ConditionError(
                "two texts side by side",
                span=match.span(kind),
                hint=f"write \\{word[0]} for {word[0]}",
            )
        found.append(CesqlToken(kind, word.upper() if kind == "word" else word, match.span(kind)))
        at = match.end()
    return found


class _CesqlParser:
    """Reads tokens by recursive descent. A level of precedence is read left to right."""

    def __init__(self, text: str, tokens: Sequence[CesqlToken]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0
        self.depths: dict[int, int] = {}  # of nodes, by identity
        self.kept: list[Node] = []

    @property
    def next(self) -> CesqlToken:
        return self.tokens[self.at]

    def is_word(self, *words: str) -> bool:
        return self.next.kind in ("word", "sign") and self.next.word in words

    def take(self, *words: str) -> CesqlToken | None:
        """The next token if it is one of these."""
        if not self.is_word(*words):
            return None
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, word: str, what: str = "") -> CesqlToken:
        if (self.next.kind == "end") if not word else self.is_word(word):
            self.at += 1
            return self.tokens[self.at - 1]
        raise self.unexpected(what or f"{word!r}")

    def unexpected(self, wanted: str) -> ConditionError:
        start, end = self.next.span
        found = repr(self.text[start:end]) if end > start else "the end"
        return ConditionError(f"expected {wanted}, got {found:.80}", span=self.next.span)

    def applied(self, name: str, *arguments: Node, start: int) -> Applied:
        """A node, unless it is nested too deep."""
        node = Applied(name, arguments, (start, self.tokens[self.at - 1].span[1]))
        depth = 1 + max((self.depths.get(id(each), 0) for each in arguments), default=0)
        if depth > DEPTH_LIMIT:
            raise LimitError(f"nested deeper than {DEPTH_LIMIT} levels", span=node.span)
        self.depths[id(node)] = depth
        self.kept.append(node)  # so that its identity stays its own
        return node

    def logic(self, depth: int) -> Node:
        """AND, OR and XOR have one precedence: they are read from left to right."""
        start = self.next.span[0]
        node = self.binary(0, depth)
        while word := self.take(*_LOGIC):
            name = word.word.lower()
            parts = [node, self.binary(0, depth)]
            while self.take(word.word):
                parts.append(self.binary(0, depth))
            node = self.applied(name, *parts, start=start)
        return node

    def binary(self, lowest: int, depth: int) -> Node:
        """Operators whose level is at least `lowest`."""
        start = self.next.span[0]
        node = self.suffixed(depth)
        while self.next.kind == "sign" and (level := _LEVELS.get(self.next.word, -1)) >= lowest:
            name = "!=" if self.next.word == "<>" else self.next.word
            self.at += 1
            node = self.applied(name, node, self.binary(level + 1, depth), start=start)
        return node

    def suffixed(self, depth: int) -> Node:
        """LIKE and IN."""
        start = self.next.span[0]
        node = self.unary(depth)
        while self.is_word("NOT", "LIKE", "IN"):
            negated = self.take("NOT")
            if self.take("LIKE"):
                pattern = self.next
                if pattern.kind != "text":
                    raise self.unexpected("a pattern in quotes")
                self.at += 1
                made = self.applied("like", node, _literal(pattern), start=start)
            elif self.take("IN"):
                self.expect("(")
                made = self.applied("in", node, *self.listed(depth), start=start)
            else:
                raise self.unexpected("LIKE or IN")
            node = self.applied("not", made, start=start) if negated else made
        return node

    def unary(self, depth: int) -> Node:
        """NOT and `-` bind to what follows, before any comparison."""
        if depth > DEPTH_LIMIT:
            raise LimitError(f"nested deeper than {DEPTH_LIMIT} levels", span=self.next.span)
        start = self.next.span[0]
        if self.take("NOT"):
            return self.applied("not", self.unary(depth + 1), start=start)
        if sign := self.take("-", "+"):
            follows = self.next
            number = follows.kind == "word" and follows.word.isdigit()
            if number and follows.span[0] == start + 1:
                self.at += 1
                return _number(sign.word + follows.word, (start, follows.span[1]))
            if sign.word == "+":
                raise self.unexpected("a number right after '+'")
            return self.applied("negative", self.unary(depth + 1), start=start)
        return self.primary(depth)

    def primary(self, depth: int) -> Node:
        token = self.next
        if self.take("("):
            node = self.logic(depth + 1)
            self.expect(")", "an operator or ')'")
            return node
        if token.kind == "text":
            self.at += 1
            return _literal(token)
        if token.kind != "word" or token.word in ("AND", "OR", "XOR", "LIKE", "IN"):
            raise self.unexpected("a value, an attribute or a function")
        self.at += 1
        if token.word in ("TRUE", "FALSE"):
            return Constant(token.word == "TRUE", token.span)
        if token.word == "EXISTS":
            named = self.next
            if named.kind != "word" or named.word in _RESERVED:
                raise self.unexpected("the name of an attribute")
            self.at += 1
            return Exists(self.name(named), (token.span[0], named.span[1]))
        if token.word.isdigit():
            return _number(token.word, token.span)
        if self.take("("):
            return self.called(token, depth)
        return Attribute(self.name(token), token.span)

    def called(self, token: CesqlToken, depth: int) -> Node:
        arguments = [] if self.take(")") else self.listed(depth)
        if function(token.word, len(arguments)) is None:
            names = sorted({name for name, _ in FUNCTIONS})
            if token.word in names:
                raise ConditionError(
                    f"{token.word} does not take {len(arguments)} arguments", span=token.span
                )
            known = nearest(token.word, names) or ""
            raise ConditionError(
                f"unknown function {token.word!r:.80}",
                span=token.span,
                hint=known if known.startswith("did") else f"functions: {', '.join(names)}",
            )
        return self.applied(token.word, *arguments, start=token.span[0])

    def listed(self, depth: int) -> list[Node]:
        """Expressions after an opening parenthesis, and the closing one."""
        found = [self.logic(depth + 1)]
        while self.take(","):
            found.append(self.logic(depth + 1))
        self.expect(")", "',' or ')'")
        return found

    def name(self, token: CesqlToken) -> str:
        if _NAME.fullmatch(token.word) is None:
            raise ConditionError(
                f"{self.text[slice(*token.span)]!r:.80} is not a name of an attribute",
                span=token.span,
                hint="a name has the letters a to z and digits",
            )
        if token.word == "DATA":
            raise ConditionError(
                "CESQL reads the context attributes of an event, not its data",
                span=token.span,
                hint="the language of tamis reads both",
            )
        return token.word.lower()


def _number(digits: str, span: Span) -> Constant:
    value = int(digits) if len(digits.lstrip("+-0")) <= 10 else HIGHEST + 1
    if not -HIGHEST - 1 <= value <= HIGHEST:
        raise ConditionError("a number outside the 32-bit integers", span=span)
    return Constant(value, span)


def _literal(token: CesqlToken) -> Constant:
    """Only the quote around the text is escaped; any other backslash is itself."""
    quote = token.word[0]
    return Constant(token.word[1:-1].replace(f"\\{quote}", quote), token.span)
