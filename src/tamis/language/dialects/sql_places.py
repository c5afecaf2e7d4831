"""The tokens of an SQL text: what is refused before parsing, and the places of its parts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from tamis.errors import ConditionError, LimitError, Span

DEPTH = 25
"""Levels of parentheses. The parser needs many frames for each, and Python has few."""
_FARTHEST = 10  # levels from a part to one whose place is known
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_PREFIX = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
_JOINS = (TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.WHERE, TokenType.COMMA)
_PLAIN = {
    *_JOINS,
    *_OPEN[:3],
    *_CLOSE[:3],
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.IS,
    TokenType.IN,
    TokenType.LIKE,
    TokenType.ILIKE,
    TokenType.ESCAPE,
    TokenType.BETWEEN,
    TokenType.DOT,
    TokenType.DASH,
    TokenType.PLUS,
    TokenType.STAR,
    TokenType.SLASH,
}
"""What conditions that can be translated are made of, but for words that begin a literal."""


def check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse what the parser would leave out or read in a way of its own, and deep nesting."""
    depth = prefixes = 0
    opened: list[Span] = []
    for token in tokens:
        kind, span = token.token_type, (token.start, token.end + 1)
        if kind == TokenType.SEMICOLON:
            raise ConditionError(
                "a condition is one expression", span=span, hint="leave out the semicolon"
            )
        if kind == TokenType.NOT and token.text == "!":
            raise ConditionError("'!' alone is no operator of SQL", span=span, hint="write NOT")
        depth += (kind in _OPEN) - (kind in _CLOSE)
        prefixes = prefixes + 1 if kind in _PREFIX else 0
        if max(depth, prefixes) > DEPTH:
            raise LimitError(f"SQL nested deeper than {DEPTH} levels", span=span)
        if kind == TokenType.L_PAREN:
            opened.append(span)
        elif kind == TokenType.R_PAREN:
            if not opened:
                raise ConditionError("this closing parenthesis has no opening one", span=span)
            opened.pop()
    if opened:
        raise ConditionError("this parenthesis is never closed", span=opened[-1])


class TextPlaces:
    """The places of the parts of a text. The parser knows those of names and literals."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._starts = [token.start for token in tokens]
        self._found: dict[int, tuple[exp.Expr, Span | None]] = {}  # by identity

    def of(self, node: exp.Expr) -> Span | None:
        """From the first to the last token of a part, as far as that is known."""
        if id(node) not in self._found:  # each value of a long list asks for the list
            self._found[id(node)] = node, self._within(node) or self._beside(node)
        return self._found[id(node)][1]

    def _within(self, node: exp.Expr) -> Span | None:
        known = [each.meta for each in node.walk() if "start" in each.meta]
        if not known:
            return None
        first = bisect_left(self._starts, min(meta["start"] for meta in known))
        last = bisect_left(self._starts, max(meta["start"] for meta in known))
        first, last = self._balanced(first, last)
        return self._tokens[first].start, self._tokens[last].end + 1

    def _beside(self, node: exp.Expr) -> Span | None:
        """A special token near the part that a part without names and literals belongs to."""
        odd = [each for each in self._tokens if each.token_type not in _PLAIN]
        around, parent = None, node.parent
        for _ in range(_FARTHEST):
            if around is not None or parent is None:
                break
            around, parent = self._within(parent), parent.parent
        if not odd or around is None:
            return around if not odd else (odd[0].start, odd[0].end + 1)
        nearest = min(odd, key=lambda each: max(around[0] - each.end, each.start - around[1]))
        return nearest.start, nearest.end + 1

    def _balanced(self, first: int, last: int) -> tuple[int, int]:
        """Wider, so that parentheses and words around the part are within."""
        tokens = self._tokens
        open_ = lowest = 0
        for token in tokens[first : last + 1]:
            open_ += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
            lowest = min(lowest, open_)
        while lowest < 0 < first and tokens[first - 1].token_type in _OPEN:
            first, lowest, open_ = first - 1, lowest + 1, open_ + 1
        while first and tokens[first - 1].token_type not in _PLAIN:
            first -= 1
        while open_ > 0 and last + 1 < len(tokens) and tokens[last + 1].token_type in _CLOSE:
            last, open_ = last + 1, open_ - 1
        while last + 1 < len(tokens) and tokens[last + 1].token_type not in _PLAIN:
            last += 1
        after = [token.token_type for token in tokens[last + 1 : last + 3]]
        if after == [TokenType.L_PAREN, TokenType.R_PAREN]:  # of a function
            last += 2
        return first, last

    def at(self, line: int, column: int) -> Span | None:
        """The token that ends in this line and column, as errors of the parser give them."""
        for token in self._tokens:
            if (token.line, token.col) == (line, column):
                return token.start, token.end + 1
        return None
