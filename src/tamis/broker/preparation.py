"""What is checked about a subscription before it goes to the sequencer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from threading import Lock
from typing import Any

import pyarrow as pa

from tamis.engine import Engine
from tamis.errors import BrokerError, TamisError
from tamis.language.dialects import NATIVE
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.replay.live_subscriptions import subscribe_rows

DEPTH = 64  # levels of JSON that a caller may send
NAME, KEY = 1000, 255  # characters
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')  # strings are skipped whole


class ConditionChecker:
    """Checks conditions as a subscribe does. Threads may share it."""

    def __init__(self, schema: Schema, operators: EnabledOperators) -> None:
        self._lock, self._operators = Lock(), operators
        self._engine = Engine(schema, operators=operators)

    def check(self, condition: str, language: str, schema: Schema) -> None:
        """Raise what is wrong with a condition under a schema."""
        checked_text(condition, "the condition")
        with self._lock:
            if self._engine.schema is not schema:
                self._engine = Engine(schema, operators=self._operators)
            self._engine.encoder.forget_reserved()
            self._engine.compile(condition, language)

    def check_many(
        self, conditions: Mapping[int, tuple[str, str]], schema: Schema
    ) -> dict[int, str]:
        """Why conditions, each with its language, are refused, by their numbers.

        They are compiled as a table, in an engine that is thrown away.
        """
        plain = [at for at, (_, language) in conditions.items() if language == NATIVE]
        table = pa.table({"id": plain, "condition": [conditions[at][0] for at in plain]})
        with Engine(schema, operators=self._operators) as engine:
            wrong = {plain[row]: why for row, why in subscribe_rows(engine, table, stored=False)}
        for at, (condition, language) in conditions.items():
            if language != NATIVE:
                try:
                    self.check(condition, language, schema)
                except TamisError as why:
                    wrong[at] = str(why)
        return wrong


def checked_text(text: str | None, what: str, most: int | None = None) -> str | None:
    """The text; half of a surrogate pair, which JSON can spell, is refused.

    So is a text with more than `most` characters.
    """
    if text is not None and most is not None and len(text) > most:
        raise BrokerError(f"{what} has {len(text):,} characters, more than {most:,}")
    try:
        if text is not None:
            text.encode()
    except UnicodeEncodeError:
        raise BrokerError(
            f"{what} has half of a surrogate pair, which is not a character"
        ) from None
    return text


def metadata_text(given: Mapping[str, Any] | None, most: int) -> str | None:
    """Metadata as the log keeps it."""
    if given is None:
        return None
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise BrokerError(
            "the metadata is not JSON: it may not have NaN, infinity or cycles"
        ) from None
    checked_text(text, "the metadata")
    encoded = text.encode()
    if len(encoded) > most:
        raise BrokerError(f"the metadata has more than {most:,} bytes of JSON")
    if json_depth(encoded) > DEPTH:
        raise BrokerError(f"the metadata is nested deeper than {DEPTH} levels")
    return text


def json_depth(text: bytes) -> int:
    """How deep a JSON text is nested; 0 if it has too few brackets to be too deep."""
    if text.count(b"{") + text.count(b"[") <= DEPTH:  # nearly always
        return 0
    depth = deepest = 0
    for each in _BRACKETS.findall(text):
        if each in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif each in b"}]":
            depth -= 1
    return deepest
