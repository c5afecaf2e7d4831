"""Conditions of SQL, as in a `WHERE` clause.

    WHERE price < 5 AND NOT (kind = 'oak' OR seller.rating IS NULL)

A NULL of SQL is an absent value. A comparison with it is neither true nor false, also under NOT,
and a condition matches if it is true. Where databases read a text in different ways, it is refused.
"""

from __future__ import annotations

from tamis.errors import ConditionError
from tamis.model.condition import Condition
from tamis.model.schema import Schema


def read(text: str, schema: Schema) -> Condition:
    """The condition of a WHERE clause, with or without the word WHERE."""
    try:
        from tamis.language.dialects.sql_text import read_where
    except ModuleNotFoundError as why:
        if why.name != "sqlglot":
            raise
        raise ConditionError("SQL is read by sqlglot: pip install 'tamis[sqlrules]'") from None
    try:
        return read_where(text, schema)
    except ConditionError as error:
        raise error.with_text(text) from None
