"""The language of tamis as a dialect: the default."""

from __future__ import annotations

from tamis.language.parser import parse
from tamis.model.condition import Condition
from tamis.model.schema import Schema


def read(text: str, schema: Schema) -> Condition:
    """Parse a condition. Its meaning does not depend on the schema."""
    return parse(text)
