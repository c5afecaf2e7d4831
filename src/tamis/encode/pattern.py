"""Text patterns that are not intervals: `ends with`, and `like` with a wildcard inside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

Piece = str | tuple[str | None, ...]
"""The part of a pattern between two `%`: text, or code points with None for `_`."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A `like` pattern, split at its `%` signs."""

    pieces: tuple[Piece, ...]

    @classmethod
    def like(cls, text: str) -> Pattern:
        """Parse a `like` pattern: `%` is any text, `_` one code point, a backslash escapes."""
        pieces: list[list[str | None]] = [[]]
        escaped = False
        for character in text:
            if escaped:
                pieces[-1].append(character)
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == "%":
                pieces.append([])
            else:
                pieces[-1].append(None if character == "_" else character)
        return cls(tuple(_piece(piece) for piece in pieces))

    @classmethod
    def ends_with(cls, text: str) -> Pattern:
        """The pattern of texts that end with `text`."""
        return cls(("", text))

    @property
    def literal(self) -> str | None:
        """The only text that the pattern matches, if it has no wildcard."""
        piece = self.pieces[0]
        return piece if len(self.pieces) == 1 and isinstance(piece, str) else None

    @property
    def prefix(self) -> str:
        """The prefix of every matching text."""
        first = self.pieces[0]
        if isinstance(first, str):
            return first
        return "".join(character for character in first[: first.index(None)] if character)

    @property
    def only_prefix(self) -> bool:
        """Whether the pattern is equivalent to its prefix."""
        return len(self.pieces) > 1 and isinstance(self.pieces[0], str) and not any(self.pieces[1:])

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. Linear: inner pieces are found leftmost first."""
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return len(text) == len(first) and _fits(first, text, 0)
        if len(text) < len(first) + len(last):
            return False
        if not (_fits(first, text, 0) and _fits(last, text, len(text) - len(last))):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in self.pieces[1:-1]:
            at = _find(piece, text, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True


def _piece(characters: list[str | None]) -> Piece:
    if None in characters:
        return tuple(characters)
    return "".join(character for character in characters if character is not None)


def _fits(piece: Piece, text: str, at: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, at)
    return _expression(piece).match(text, at) is not None


def _find(piece: Piece, text: str, start: int, end: int) -> int:
    if isinstance(piece, str):
        return text.find(piece, start, end)
    found = _expression(piece).search(text, start, end)
    return -1 if found is None else found.start()


@lru_cache(maxsize=4096)
def _expression(piece: tuple[str | None, ...]) -> re.Pattern[str]:
    """A piece with `_` as a regular expression of fixed length, which cannot backtrack."""
    return re.compile("".join("." if c is None else re.escape(c) for c in piece), re.DOTALL)
