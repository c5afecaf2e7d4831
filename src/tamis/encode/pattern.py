"""Tests of text that are not intervals.

`Pattern` is `ends with`, `has substring`, and `like` with a wildcard inside. `TextTest` is all the
rest: regular expressions, networks, and comparisons that ignore case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address, ip_network

from tamis.model.condition import IGNORING_CASE, REGULAR, SUBSTRING, WITHIN
from tamis.model.regular_expressions import regular_expression

_LONGEST = 64  # characters of a text whose address is remembered

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

    @classmethod
    def has_substring(cls, text: str) -> Pattern:
        """The pattern of texts in which `text` occurs."""
        return cls(("", text, ""))

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

    def compiled(self) -> Callable[[str], bool]:
        """The function for many texts: `matches`, or a faster one that gives the same."""
        pieces = [piece for piece in self.pieces if isinstance(piece, str)]
        if (
            len(pieces) < len(self.pieces)
            or len(pieces) not in (2, 3)
            or pieces[2:] not in ([], [""])
        ):
            return self.matches
        first, other, shortest = pieces[0], pieces[1], len(pieces[0]) + len(pieces[1])
        if len(pieces) == 2:
            if not first:
                return lambda text: text.endswith(other)
            return lambda text: (
                text.endswith(other) and text.startswith(first) and len(text) >= shortest
            )
        if not first:
            return lambda text: other in text
        return lambda text: text.find(other, len(first)) >= 0 and text.startswith(first)

    def tagged(self, tag: str) -> Pattern:
        """The pattern of texts that have a tag in front."""
        first, *others = self.pieces
        return Pattern((tag + first if isinstance(first, str) else (*tag, *first), *others))

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


@dataclass(frozen=True, slots=True)
class TextTest:
    """A comparator with its constants; `skipped` characters in front of the text are a tag."""

    comparator: str
    constants: tuple[str, ...]
    skipped: int = 0

    def tagged(self, tag: str) -> TextTest:
        """The test of texts that have a tag in front."""
        return replace(self, skipped=len(tag))

    def compiled(self) -> Callable[[str], bool]:
        """The function for many texts."""
        holds, skipped = _function(self.comparator, self.constants), self.skipped
        return (lambda text: holds(text[skipped:])) if skipped else holds

    def matches(self, text: str) -> bool:
        """Whether a text passes."""
        return self.compiled()(text)


TextCheck = Pattern | TextTest


def text_check(comparator: str, constants: tuple[str, ...]) -> TextCheck:
    """The check of a comparator that is not an interval of texts."""
    if comparator == "like":
        return Pattern.like(*constants)
    if comparator == "ends with":
        return Pattern.ends_with(*constants)
    if comparator == SUBSTRING:
        return Pattern.has_substring(*constants)
    return TextTest(comparator, constants)


@lru_cache(maxsize=4096)
def _function(comparator: str, constants: tuple[str, ...]) -> Callable[[str], bool]:
    if comparator == REGULAR:
        search = regular_expression(constants[0]).search
        return lambda text: search(text) is not None
    if comparator == WITHIN:
        return _within(constants[0])
    folded = frozenset(constant.casefold() for constant in constants)
    plain = comparator.removesuffix(IGNORING_CASE)
    if plain in ("=", "in"):
        return lambda text: text.casefold() in folded
    (constant,) = folded
    if plain == "starts with":
        return lambda text: text.casefold().startswith(constant)
    holds = text_check(plain, (constant,)).compiled()
    return lambda text: holds(text.casefold())


def _within(text: str) -> Callable[[str], bool]:
    """Whether a text is an address in a network. Other texts are not."""
    network = ip_network(text)
    version = network.version
    first, last = int(network.network_address), int(network.broadcast_address)

    def holds(given: str) -> bool:
        found = _address(given) if len(given) <= _LONGEST else _read_address(given)
        return found is not None and found[0] == version and first <= found[1] <= last

    return holds


def _read_address(text: str) -> tuple[int, int] | None:
    """The version and the number of an address; None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.version, int(address)


_address = lru_cache(maxsize=4096)(_read_address)  # many networks ask about the same texts
