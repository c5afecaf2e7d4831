"""Text to tokens, by one regular expression.

Tokens are tuples (kind, text, start, end). The kind of a keyword or punctuation mark is the word
itself.
"""

from __future__ import annotations

import re

from tamis.errors import ConditionError
from tamis.language.hints import character_hint, number_hint
from tamis.model.condition import NAME, SYNONYMS
from tamis.model.printer import DATE, KEYWORDS
from tamis.model.times.durations import DURATION

Token = tuple[str, str, int, int]

_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<name>{NAME.pattern})
    | (?P<date>{DATE.pattern})(?![\w.])
    | (?P<duration>{DURATION.pattern})(?![\w.])
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<mark><=|>=|!=|<>|==|[=<>(),+*/-])
    | \?(?P<variable>{NAME.pattern})
    | @(?P<attribute>{NAME.pattern}|`[^`]+`)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | `(?P<quoted>[^`]+)`
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


def tokens(text: str) -> list[Token]:
    """All tokens, the last of kind `end`."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "bad"
        word = match[kind]
        end = match.end()
        start = end - len(word)
        if kind == "name":
            if (lowered := word.lower()) in KEYWORDS:
                kind = lowered
        elif kind == "mark":
            kind = SYNONYMS.get(word, word)
        elif kind == "text":
            word = _unescape(text, start, end)
        elif kind == "variable":
            start -= 1  # the question mark
        elif kind == "attribute":
            word, start = word.strip("`"), start - 1
        elif kind == "quoted":
            kind, start = "name", start - 2
        elif kind == "bad":
            raise _bad(text, start)
        found.append((kind, word, start, end))
        if kind == "end":
            break
    return found


def _unescape(text: str, start: int, end: int) -> str:
    inner = text[start + 1 : end - 1]
    if "\\" not in inner:
        return inner

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) > 1:
            number = int(code[1:], 16)
            if number <= 0x10FFFF:
                return chr(number)
        elif code in _PLAIN:
            return _PLAIN[code]
        place = start + 1 + match.start()
        raise ConditionError(
            f"unknown escape {match[0]!r}",
            span=(place, place + len(match[0])),
            hint=r"known are \\ \" \' \n \r \t \uXXXX \UXXXXXXXX; write \\ for a backslash",
        )

    return _ESCAPE.sub(one, inner)


def _bad(text: str, start: int) -> ConditionError:
    character = text[start]
    if character in "\"'`":
        what, hint = f"the quote {character} is never closed", None
    elif character.isdigit() or character == ".":
        end = start + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "._"):
            end += 1
        word = text[start:end][:40]
        return ConditionError(
            f"{word!r} is not a number", span=(start, end), hint=number_hint(word)
        )
    elif character == "@":
        what, hint = "a lone @", "write the value of an attribute as @price"
    elif character == "?":
        what, hint = "a lone question mark", "write a variable as ?people"
    else:
        what = f"{character!r} has no meaning here"
        hint = character_hint(character, text, start)
    return ConditionError(what, span=(start, start + 1), hint=hint)
