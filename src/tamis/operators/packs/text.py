"""What a text says: operators over words and patterns.

    hasKeyword(fire)                  the word stands in the text
    hasPhrase("traffic jam")          these words stand there, one right after the other
    wordCount(?n)                     how many words there are
    matchesPattern("flight [A-Z]+")   the pattern is found somewhere in the text
    patternGroups("flight ([A-Z]+)", ?group)   what its first group stands for, wherever it is found

Words are compared without regard to case and to forms of letters (see `text_words`), in every
language alike. Patterns are those of RE2, whose time grows with the text and not with its worst
case; they see the text as it is, `(?i)` makes them blind to case. `pack` makes the same operators
over another attribute than `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

from tamis.errors import TamisError
from tamis.operators.packs.batch_operator import Packed
from tamis.operators.packs.text_words import Words, words_of
from tamis.operators.registry import register
from tamis.operators.serialization import made_by
from tamis.operators.thread_executor import left_alone

__all__ = [
    "TextError",
    "hasKeyword",
    "hasPhrase",
    "matchesPattern",
    "pack",
    "patternGroups",
    "wordCount",
]

LARGEST = 1000
"""Instructions of a compiled pattern. RE2 does no more than each of them once for a character; a
text of a megabyte takes it seconds even so, and minutes with patterns ten times as large."""

_SHOWN = 80  # characters of a value in a message


class TextError(TamisError, ValueError):
    """A text, a word or a pattern that cannot be used."""


def pack(*, attribute: str = "text", prefix: str = "") -> tuple[Packed, ...]:
    """The five operators over another attribute.

    `prefix` is put before their names, so that several packs can live side by side.

    >>> [each.name for each in pack(attribute="body", prefix="body_")][:2]
    ['body_hasKeyword', 'body_hasPhrase']
    """

    def packed(name: str, answer: Callable[..., list[Any]], **rest: Any) -> Packed:
        return Packed(prefix + name, answer, attribute=attribute, module=__name__, **rest)

    word, words, pattern = {"word": "text"}, {"words": "text"}, {"pattern": "text"}
    made = (
        packed("hasKeyword", _has_keyword, arguments=word, refusal=_no_keyword, cost=0.01),
        packed("hasPhrase", _has_phrase, arguments=words, refusal=_no_phrase, cost=0.01),
        # A pattern is somebody's program: in a thread it can be given up.
        packed(
            "matchesPattern",
            _matches_pattern,
            arguments=pattern,
            refusal=_no_pattern,
            cost=0.02,
            run="thread",
        ),
        packed(
            "patternGroups",
            _pattern_groups,
            arguments=pattern,
            gives={"group": "text"},
            refusal=_no_groups,
            cost=0.05,
            run="thread",
        ),
        packed("wordCount", _word_count, gives={"n": "number"}, cost=0.01),
    )
    return made_by(pack, {"attribute": attribute, "prefix": prefix}, made)


def _has_keyword(texts: Sequence[Any], word: str) -> list[bool | TextError]:
    """Whether the word stands in the text."""
    _raise(_no_keyword(word))
    wanted = _wanted(word)
    return _each(texts, lambda text: words_of(text).has(wanted))


def _has_phrase(texts: Sequence[Any], words: str) -> list[bool | TextError]:
    """Whether these words stand in the text, one right after the other."""
    _raise(_no_phrase(words))
    wanted = _wanted(words)
    return _each(texts, lambda text: words_of(text).has(wanted))


def _word_count(texts: Sequence[Any]) -> list[int | TextError]:
    """How many words the text has."""
    return _each(texts, lambda text: len(words_of(text)))


def _matches_pattern(texts: Sequence[Any], pattern: str) -> list[bool | TextError]:
    """Whether the pattern is found somewhere in the text."""
    compiled = _compiled(pattern)
    return _each(texts, lambda text: compiled.search(text) is not None)


def _pattern_groups(texts: Sequence[Any], pattern: str) -> list[list[str] | TextError]:
    """What the first group of the pattern stands for, wherever it is found in the text."""
    compiled = _compiled(pattern)
    _raise(_no_groups(pattern))

    def groups(text: str) -> list[str]:
        found: dict[str, None] = {}
        for match in compiled.finditer(text):
            _stop_if_left_alone()  # a long text has many matches
            if (group := match.group(1)) is not None:
                found[group] = None
        return list(found)

    return _each(texts, groups)


def _no_keyword(word: str) -> str | None:
    if len(word.split()) > 1:
        return f"{word!r:.{_SHOWN}} is more than one word; hasPhrase looks for several"
    return _no_phrase(word)


def _no_phrase(words: str) -> str | None:
    if _wanted(words):
        return None
    return f"there is no word in {words!r:.{_SHOWN}}, only signs; a pattern can look for those"


def _no_pattern(pattern: str) -> str | None:
    try:
        _compiled(pattern)
    except TextError as error:
        return str(error)
    return None


def _no_groups(pattern: str, group: str | None = None) -> str | None:
    refusal = _no_pattern(pattern)
    if refusal is None and _compiled(pattern).groups == 0:
        return f"pattern {pattern!r:.{_SHOWN}} has no group: put (…) around what is wanted"
    return refusal


def _raise(refusal: str | None) -> None:
    if refusal is not None:
        raise TextError(refusal)


def _stop_if_left_alone() -> None:
    """Not to take the processor from others, nor to be busy in RE2 when the program ends."""
    _raise("nobody waits for the answer any more" if left_alone() else None)


@lru_cache(maxsize=1 << 16)
def _wanted(words: str) -> tuple[str, ...]:
    """The words of a condition; kept apart from those of texts, which come and go."""
    return Words(words).listed


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False  # they are raised
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise TextError(
            f"pattern {pattern!r:.{_SHOWN}} is none of RE2's: {reason} "
            "(there are no backreferences and no look-around in RE2)"
        ) from None
    if compiled.programsize > LARGEST:
        raise TextError(
            f"pattern {pattern!r:.{_SHOWN}} is too large: {compiled.programsize} instructions, "
            f"at most {LARGEST}; repeat less, {{0,1000}} copies its part a thousand times"
        )
    return compiled


def _each(given: Sequence[Any], ask: Callable[[str], Any]) -> list[Any | TextError]:
    """An answer for each text; what is none is answered with the reason."""
    answers: list[Any | TextError] = []
    for each in given:
        _stop_if_left_alone()
        try:
            answers.append(ask(each) if isinstance(each, str) else _no_text(each))
        except UnicodeEncodeError:
            answers.append(_no_text(each))
    return answers


def _no_text(given: object) -> TextError:
    lone = " with a lone surrogate" if isinstance(given, str) else ""
    return TextError(f"expected text, got {given!r:.{_SHOWN}}{lone}")


hasKeyword, hasPhrase, matchesPattern, patternGroups, wordCount = pack()  # noqa: N816 - as in conditions
for _each_of_them in (hasKeyword, hasPhrase, matchesPattern, patternGroups, wordCount):
    register(_each_of_them)
