"""The table of dialects. A new one is one file and one line here.

A dialect is a function `read(text, schema) -> Condition`, which raises a `ConditionError` for text
that it cannot read. The type check, the limits and the normal form are the same for all dialects.
Users can register their own with `register`; an engine finds it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tamis.errors import ConditionError
from tamis.language.limits import check_length
from tamis.language.normal_form import check_size
from tamis.language.type_check import check
from tamis.model.condition import Condition
from tamis.model.operator import Signature
from tamis.model.schema import Schema
from tamis.registry import Registry

NATIVE = "tamis"
Read = Callable[[str, Schema], Condition]


class DialectEntry(NamedTuple):
    """What the table says about a dialect, without importing it."""

    name: str
    path: str  # module:function, imported when used
    idea: str


_TABLE: dict[str, DialectEntry] = {
    entry.name: entry
    for entry in (
        DialectEntry(
            NATIVE,
            "tamis.language.dialects.native:read",
            'the language of tamis: price < 5 and kind = "oak"',
        ),
        DialectEntry(
            "eventbridge",
            "tamis.language.dialects.eventbridge:read",
            'event patterns of Amazon EventBridge: {"source": ["aws.ec2"]}',
        ),
        DialectEntry(
            "sql",
            "tamis.language.dialects.sql:read",
            "WHERE clauses of SQL: price < 5 AND kind LIKE 'oak%'",
        ),
        DialectEntry(
            "cesql",
            "tamis.language.dialects.cesql.dialect:read",
            "CloudEvents SQL: type = 'sold' AND subject LIKE 'oak%'",
        ),
    )
}
_REGISTRY = Registry("language", ConditionError, _TABLE)
dialects, entry, register = _REGISTRY.names, _REGISTRY.entry, _REGISTRY.register
_readers: dict[str, Read] = {}


def translate(text: str, schema: Schema, language: str = NATIVE) -> Condition:
    """Turn text in a language into a condition. The condition is not type-checked yet."""
    reader = _readers.get(language) if isinstance(language, str) else None
    if reader is None:
        loaded: Read = _REGISTRY.load(language)
        reader = _readers[language] = loaded
    check_length(text)
    condition = reader(text, schema)
    if not isinstance(condition, Condition):
        raise ConditionError(
            f"the dialect {language!r} returned {type(condition).__name__}, expected a Condition"
        )
    return condition


def read(
    text: str,
    schema: Schema,
    operators: Mapping[str, Signature] | None = None,
    language: str = NATIVE,
) -> Condition:
    """Turn text in a language into a condition that is valid under the schema.

    >>> schema = Schema.from_dict({"attributes": {"price": "decimal"}})
    >>> read("price < 5", schema)
    Predicate(attribute='price', comparator='<', value=5)
    """
    condition = translate(text, schema, language)
    check_condition(condition, schema, operators, text, language)
    return condition


def check_condition(
    condition: Condition,
    schema: Schema,
    operators: Mapping[str, Signature] | None,
    text: str | None,
    language: str = NATIVE,
    *,
    stored: bool = False,
) -> None:
    """Check the size and the types of a condition; errors show the place in `text`."""
    # The check finds parts of a predicate with the native lexer; others show the whole predicate.
    native = text if language == NATIVE else None
    try:
        check_size(condition)  # before looking at each of a million predicates
        check(condition, schema, native, operators, stored=stored)
    except ConditionError as error:
        raise error.with_text(text) from None
