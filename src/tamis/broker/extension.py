"""Extensions of the schema: checked before they go to the sequencer, and again in their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from tamis.broker.sequence.answers import converted
from tamis.errors import SchemaError
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.broker.broker import Broker

LARGEST = 4 << 20  # bytes of a schema's document: each record has all of it


class ExtensionError(SchemaError):
    """An extension that breaks the rule by which it extends."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class Extended(NamedTuple):
    """A schema record in the log."""

    sequence: int
    version: int


def extend_schema(broker: Broker, rule: str, build: Callable[[Schema], Schema]) -> Future[Extended]:
    """Extend the schema by a rule: `build` makes the next schema of the present one.

    It is built here first, in the thread of the caller: nobody else waits for a bad one.
    """
    versions: list[int] = []

    def checked(old: Schema) -> Schema:
        try:
            new = build(old)
            new.check_extends(old)
            size = len(json.dumps(new.to_dict(), ensure_ascii=False).encode())
        except SchemaError as why:
            raise ExtensionError(rule, str(why)) from None
        except (RecursionError, TypeError, ValueError) as why:
            raise ExtensionError(rule, f"this is not an extension: {why}") from None
        if size > LARGEST:
            raise ExtensionError(rule, f"the schema would have more than {LARGEST:,} bytes")
        versions.append(new.version)
        return new

    checked(broker.schema)
    return converted(broker.extend(checked), lambda number: Extended(number, versions[-1]))
