"""What is checked about a subscription before it goes to the sequencer."""

from __future__ import annotations

import json
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


def checked_text(text: str | None, what: str) -> str | None:
    """The text; half of a surrogate pair, which JSON can spell, is refused."""
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
    if len(text.encode()) > most:
        raise BrokerError(f"the metadata has more than {most:,} bytes of JSON")
    return text
