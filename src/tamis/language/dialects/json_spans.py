"""JSON with the place of each value in the text, for languages that are written in JSON."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, NamedTuple

from tamis.errors import ConditionError, LimitError, Span
from tamis.language.limits import DEPTH_LIMIT

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_DECODER = json.JSONDecoder()  # of strings
_WORDS = {"true": True, "false": False, "null": None}


class JsonNode(NamedTuple):
    """A value and its place. Members of an object and items of a list are nodes too."""

    value: Any
    span: Span

    @property
    def what(self) -> str:
        """The type of the value, for messages."""
        if self.value is None:
            return "null"
        kinds = ((bool, "a boolean"), (str, "text"), (list, "a list"), (dict, "an object"))
        return next((word for kind, word in kinds if isinstance(self.value, kind)), "a number")


def read_json(text: str) -> JsonNode:
    """The value of a text; a `ConditionError` shows where it is not JSON."""
    reader = _JsonReader(text)
    found = reader.value(0)
    reader.skip_space()
    if reader.at < len(text):
        raise reader.error("expected nothing after the value")
    return found


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, message: str) -> ConditionError:
        end = min(self.at + 1, len(self.text))
        return ConditionError(f"not JSON: {message}", span=(min(self.at, end), end), text=self.text)

    def skip_space(self) -> str:
        """Skip white space; the next character, or nothing at the end."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> JsonNode:
        if depth > DEPTH_LIMIT:
            raise LimitError(
                f"nested deeper than {DEPTH_LIMIT} levels", span=(self.at, self.at + 1)
            )
        mark, start = self.skip_space(), self.at
        if mark == "{":
            return JsonNode(self._object(depth), (start, self.at))
        if mark == "[":
            return JsonNode(self._list(depth), (start, self.at))
        if mark == '"':
            return JsonNode(self._string(), (start, self.at))
        for word, value in _WORDS.items():
            if self.text.startswith(word, start):
                self.at += len(word)
                return JsonNode(value, (start, self.at))
        return JsonNode(self._number(), (start, self.at))

    def _object(self, depth: int) -> dict[str, JsonNode]:
        found: dict[str, JsonNode] = {}
        self.at += 1
        if self.skip_space() == "}":
            self.at += 1
            return found
        while True:
            if self.skip_space() != '"':
                raise self.error("expected a name in double quotes")
            start = self.at
            name = self._string()
            if name in found:
                raise ConditionError(
                    f"the name {json.dumps(name, ensure_ascii=False)} occurs twice in one object",
                    span=(start, self.at),
                    text=self.text,
                )
            if self.skip_space() != ":":
                raise self.error("expected ':' after a name")
            self.at += 1
            found[name] = self.value(depth + 1)
            if not self._goes_on("}"):
                return found

    def _list(self, depth: int) -> list[JsonNode]:
        found: list[JsonNode] = []
        self.at += 1
        if self.skip_space() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value(depth + 1))
            if not self._goes_on("]"):
                return found

    def _goes_on(self, end: str) -> bool:
        """Skip a comma or the end; whether it was a comma."""
        mark = self.skip_space()
        if mark not in (",", end) or not mark:
            raise self.error(f"expected ',' or '{end}'")
        self.at += 1
        return mark == ","

    def _string(self) -> str:
        try:
            found, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as why:
            self.at = why.pos
            raise self.error(why.msg.lower()) from None
        return str(found)

    def _number(self) -> int | float:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise self.error("expected a value")
        start, self.at = self.at, found.end()
        if not found["rest"] and len(found[0]) <= 20:
            return int(found[0])
        number = float(found[0])
        if not found["rest"] or not isfinite(number):
            raise ConditionError(
                "a number outside the 64-bit integers and the doubles",
                span=(start, self.at),
                text=self.text,
            )
        return number
