"""Operators over the words and patterns of a text.

    hasKeyword(fire)                  the text contains the word
    hasPhrase("traffic jam")          it contains these words, one right after the other
    wordCount(?n)                     the number of words
    matchesPattern("flight [A-Z]+")   the pattern is found somewhere in the text
    patternGroups("flight ([A-Z]+)", ?group)   what its first group matches, in all places

The comparison of words ignores case and forms of letters (see `text_words`), in every language.
Patterns are those of RE2, whose time is linear in the text. They are case-sensitive; `(?i)` changes
that. `pack` makes the same operators over another attribute than `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import re2

from tamis.errors import TamisError
from tamis.model.domain import RefusalError
from tamis.model.regular_expressions import regular_expression
from tamis.operators.packs.pack_operator import BatchOperator
from tamis.operators.packs.text_words import Words, words_of
from tamis.operators.registry import register
from tamis.operators.serialization import remember_pack_call
from tamis.operators.thread_executor import is_abandoned

__all__ = [
    "TextError",
    "hasKeyword",
    "hasPhrase",
    "matchesPattern",
    "pack",
    "patternGroups",
    "wordCount",
]

_SHOWN = 80  # characters of a value in a message


class TextError(TamisError, ValueError):
    """An invalid text, word or pattern."""


def pack(*, attribute: str = "text", prefix: str = "") -> tuple[BatchOperator, ...]:
    """The operators over another attribute.

    `prefix` goes before their names, so that one engine can have several packs.

    >>> [each.name for each in pack(attribute="body", prefix="body_")][:2]
    ['body_hasKeyword', 'body_hasPhrase']
    """

    def make(name: str, answer: Callable[..., list[Any]], **rest: Any) -> BatchOperator:
        return BatchOperator(prefix + name, answer, attribute=attribute, **rest)

    word, words, pattern = {"word": "text"}, {"words": "text"}, {"pattern": "text"}
    made = (
        make("hasKeyword", _has_keyword, arguments=word, validate=_keyword, cost=0.01),
        make("hasPhrase", _has_phrase, arguments=words, validate=_phrase, cost=0.01),
        # A pattern is a small program of a subscriber: in a thread its call can be abandoned.
        make(
            "matchesPattern",
            _matches_pattern,
            arguments=pattern,
            validate=_compiled,
            cost=0.02,
            run="thread",
        ),
        make(
            "patternGroups",
            _pattern_groups,
            arguments=pattern,
            gives={"group": "text"},
            validate=_with_group,
            cost=0.05,
            run="thread",
        ),
        make("wordCount", _word_count, gives={"n": "number"}, cost=0.01),
    )
    return remember_pack_call(pack, {"attribute": attribute, "prefix": prefix}, made)


def _has_keyword(texts: Sequence[Any], word: str) -> list[bool | TextError]:
    """Whether the text contains the word."""
    wanted = _keyword(word)
    return _each(texts, lambda text: words_of(text).has(wanted))


def _has_phrase(texts: Sequence[Any], words: str) -> list[bool | TextError]:
    """Whether the text contains these words, one right after the other."""
    wanted = _phrase(words)
    return _each(texts, lambda text: words_of(text).has(wanted))


def _word_count(texts: Sequence[Any]) -> list[int | TextError]:
    """How many words the text has."""
    return _each(texts, lambda text: len(words_of(text)))


def _matches_pattern(texts: Sequence[Any], pattern: str) -> list[bool | TextError]:
    """Whether the pattern is found somewhere in the text."""
    compiled = _compiled(pattern)
    return _each(texts, lambda text: compiled.search(text) is not None)


def _pattern_groups(texts: Sequence[Any], pattern: str) -> list[list[str] | TextError]:
    """What the first group of the pattern matches, in all places of the text."""
    compiled = _with_group(pattern)

    def groups(text: str) -> list[str]:
        found: dict[str, None] = {}
        for match in compiled.finditer(text):
            _stop_if_abandoned()  # a long text has many matches
            if (group := match.group(1)) is not None:
                found[group] = None
        return list(found)

    return _each(texts, groups)


def _keyword(word: str) -> tuple[str, ...]:
    """The word of a condition."""
    if len(word.split()) > 1:
        raise TextError(f"{word!r:.{_SHOWN}} has several words; use hasPhrase")
    return _phrase(word)


@lru_cache(maxsize=1 << 16)
def _phrase(words: str) -> tuple[str, ...]:
    """The words of a condition; cached apart from those of texts, which change."""
    found = Words(words).listed
    if not found:
        raise TextError(f"{words!r:.{_SHOWN}} contains no word; use matchesPattern to find signs")
    return found


def _with_group(pattern: str, group: str | None = None) -> re2._Regexp:
    compiled = _compiled(pattern)
    if compiled.groups == 0:
        raise TextError(
            f"pattern {pattern!r:.{_SHOWN}} has no group; put (…) around the part that you want"
        )
    return compiled


def _stop_if_abandoned() -> None:
    """Free the processor, and do not be inside RE2 when the program ends."""
    if is_abandoned():
        raise TextError("the caller no longer waits")


def _compiled(pattern: str) -> re2._Regexp:
    try:
        return regular_expression(pattern)
    except RefusalError as why:
        raise TextError(str(why)) from None


def _each(given: Sequence[Any], ask: Callable[[str], Any]) -> list[Any | TextError]:
    """An answer for each text; the answer for an invalid text is the error."""
    answers: list[Any | TextError] = []
    for each in given:
        _stop_if_abandoned()
        try:
            answers.append(ask(each) if isinstance(each, str) else _no_text(each))
        except UnicodeEncodeError:
            answers.append(_no_text(each))
    return answers


def _no_text(given: object) -> TextError:
    lone = " with a lone surrogate" if isinstance(given, str) else ""
    return TextError(f"expected text, got {given!r:.{_SHOWN}}{lone}")


hasKeyword, hasPhrase, matchesPattern, patternGroups, wordCount = map(register, pack())  # noqa: N816
