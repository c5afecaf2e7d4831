"""Random WHERE clauses and events, and DuckDB, which says what they mean.

Left out is what databases compute in other numbers than doubles, such as 0.1 + 0.2, and letters for
which the lower case of DuckDB is not the case folding of tamis: see docs/coming-from-sql.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import duckdb

from tamis import Schema

_NUMBERS = ("a", "b", "d", "e", "seller.rating")
_TEXTS, _FLAGS, _TIMES = ("t", "u"), ("f", "g"), ("made", "due")
_COLUMNS = (*_NUMBERS, *_TEXTS, *_FLAGS, *_TIMES)
SCHEMA = Schema.from_dict(
    {
        "attributes": {
            **dict.fromkeys(("a", "b"), "integer"),
            **dict.fromkeys(("d", "e", "seller.rating"), "decimal"),
            **dict.fromkeys(_TEXTS, "text"),
            **dict.fromkeys(_FLAGS, "boolean"),
            **dict.fromkeys(_TIMES, "timestamp"),
        }
    }
)
_TABLE = """create table events (id integer, a bigint, b bigint, d double, e double,
    seller struct(rating double), t varchar, u varchar, f boolean, g boolean, made timestamp,
    due timestamp)"""
_WORDS = (
    "",
    "a",
    "A",
    "ab",
    "aB",
    "b",
    "ba",
    "é",
    "É",
    "a%",
    "a_b",
    "\\",
    "a\\b",
    "😀",
    "it's",
    "~",
)
_PATTERNS = ("%", "", "a", "a%", "%b", "%a%", "_", "a_", "_b%", "é", "%😀", "%'%", "A%", "__")
_ESCAPED = ("a!%", "!_%", "a!_b", "!!", "%!%", "!a%", "\\", "a\\b%", "!%!_")
_WHOLE = (-1, 0, 1, 2, 3)
_REAL = (-0.5, 0.0, 0.1, 0.5, 1.0, 2.5, 3.0)
_BINARY = tuple(each for each in _REAL if each != 0.1)  # exact, in arithmetic
_START = datetime(2024, 2, 28, tzinfo=UTC)
_MOMENTS = tuple(_START + timedelta(hours=12 * step) for step in range(5))
_ORDER = ("=", "<>", "!=", "<", "<=", ">", ">=")


def random_rows(draw: Random, number: int) -> list[dict[str, Any]]:
    """Events; an attribute is often absent."""
    values: dict[str, Sequence[Any]] = {
        **dict.fromkeys(("a", "b"), _WHOLE),
        **dict.fromkeys(("d", "e", "seller.rating"), _REAL),
        **dict.fromkeys(_TEXTS, _WORDS),
        **dict.fromkeys(_FLAGS, (True, False)),
        **dict.fromkeys(_TIMES, _MOMENTS),
    }
    return [
        {name: draw.choice(values[name]) for name in _COLUMNS if draw.random() < 0.7}
        for _ in range(number)
    ]


class DuckTable:
    """The events as a table of DuckDB."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        # A division by zero is NULL, as nothing that tamis compares is infinite.
        self._connection.execute("set ieee_floating_point_ops = false")
        self._connection.execute("set error_on_division_by_zero = false")
        self._connection.execute(_TABLE)

        def naive(moment: datetime | None) -> datetime | None:
            return None if moment is None else moment.replace(tzinfo=None)

        rows = [
            (
                number,
                *(event.get(name) for name in ("a", "b", "d", "e")),
                {"rating": event.get("seller.rating")} if number % 2 or "seller.rating" in event
                else None,
                *(event.get(name) for name in (*_TEXTS, *_FLAGS)),
                *(naive(event.get(name)) for name in _TIMES),
            )
            for number, event in enumerate(events)
        ]  # fmt: skip
        self._connection.executemany(f"insert into events values ({', '.join('?' * 12)})", rows)

    def matches(self, where: str) -> set[int]:
        """The numbers of the events that a WHERE clause selects."""
        found = self._connection.execute(f"select id from events where {where}").fetchall()
        return {number for (number,) in found}

    def close(self) -> None:
        self._connection.close()


def random_where(draw: Random, depth: int = 3, dividing: bool = True) -> str:
    """A condition. Without `dividing`, it has no division, whose NULLs have no counterpart."""
    shape = draw.random()
    if depth and shape < 0.45:
        word = draw.choice((" AND ", " OR "))
        parts = [random_where(draw, depth - 1, dividing) for _ in range(draw.choice((2, 2, 3)))]
        return word.join(f"({part})" for part in parts)
    if depth and shape < 0.6:
        return f"NOT ({random_where(draw, depth - 1, dividing)})"
    if depth and shape < 0.7:
        asked = draw.choice(("TRUE", "FALSE", "UNKNOWN", "NULL"))
        word = draw.choice(("IS", "IS NOT"))
        inner = random_where(draw, depth - 1, dividing=False)
        # DuckDB knows UNKNOWN for conditions only, and IS NULL is the same for them.
        return f"({inner}) {word} {asked if asked != 'UNKNOWN' else 'NULL'}"
    return _Predicates(draw, dividing).one()


class _Predicates:
    def __init__(self, draw: Random, dividing: bool) -> None:
        self.draw, self.dividing = draw, dividing

    def one(self) -> str:
        draw = self.draw
        kind = draw.choice(("number", "number", "number", "text", "text", "time", "flag"))
        if draw.random() < 0.1:
            return f"{self.column(draw.choice(_COLUMNS))} IS {draw.choice(('', 'NOT '))}NULL"
        if draw.random() < 0.02:
            return draw.choice(("TRUE", "FALSE", "1 = 1", "1 > 1.5", "'a' < 'b'", "NULL IS NULL"))
        if kind == "flag":
            return self.flag()
        if kind == "text" and draw.random() < 0.4:
            return self.like()
        return self.compared(kind)

    def column(self, name: str) -> str:
        return ".".join(
            f'"{part}"' if self.draw.random() < 0.2 else part for part in name.split(".")
        )

    def flag(self) -> str:
        name = self.column(self.draw.choice(_FLAGS))
        other = self.draw.choice((self.column(self.draw.choice(_FLAGS)), "TRUE", "FALSE", "NULL"))
        return self.draw.choice(
            (
                name,
                f"NOT {name}",
                f"{name} IS TRUE",
                f"{name} IS NOT FALSE",
                f"{name} = {other}",
                f"{other} <> {name}",
                f"{name} IN (TRUE, NULL)",
                f"{name} IS DISTINCT FROM {other}",
            )
        )

    def like(self) -> str:
        draw = self.draw
        name, negated = self.column(draw.choice(_TEXTS)), draw.choice(("", "NOT "))
        word = draw.choice(("LIKE", "ILIKE"))
        if draw.random() < 0.4:
            pattern, mark = draw.choice(_ESCAPED), draw.choice(("!", "!", ""))
            return f"{name} {negated}{word} {_quoted(pattern)} ESCAPE '{mark}'"
        pattern = "NULL" if draw.random() < 0.05 else _quoted(draw.choice(_PATTERNS))
        return f"{name} {negated}{word} {pattern}"

    def compared(self, kind: str) -> str:
        draw, shape = self.draw, self.draw.random()
        left = self.column(draw.choice({"number": _NUMBERS, "text": _TEXTS, "time": _TIMES}[kind]))
        if kind == "number" and draw.random() < 0.25:
            left = self.arithmetic()
        negated = draw.choice(("", "NOT "))
        if shape < 0.2:
            return f"{left} {negated}BETWEEN {self.value(kind)} AND {self.value(kind)}"
        if shape < 0.4:
            listed = ", ".join(self.value(kind) for _ in range(draw.randint(1, 3)))
            return f"{left} {negated}IN ({listed})"
        if shape < 0.5 and "/" not in left:
            return f"{left} IS {negated}DISTINCT FROM {self.value(kind)}"
        sides = [left, self.value(kind)]
        if draw.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {draw.choice(_ORDER)} {sides[1]}"

    def value(self, kind: str) -> str:
        draw, shape = self.draw, self.draw.random()
        if shape < 0.08:
            return "NULL"
        if shape < 0.3:
            names = {"number": _NUMBERS, "text": _TEXTS, "time": _TIMES}[kind]
            return self.column(draw.choice(names))
        if kind == "text":
            return _quoted(draw.choice(_WORDS))
        if kind == "number":
            return str(draw.choice((*_WHOLE, *_REAL)))
        moment = draw.choice(_MOMENTS)
        written = moment.replace(tzinfo=None).isoformat(sep=" ")
        return draw.choice((f"TIMESTAMP '{written}'", f"DATE '{moment.date()}'", f"'{written}'"))

    def arithmetic(self) -> str:
        draw = self.draw
        name, other = (self.column(draw.choice(_NUMBERS)) for _ in range(2))
        number = draw.choice((*_WHOLE, *_BINARY))
        shapes = [
            f"-{name}",
            f"{name} + {other}",
            f"{name} - {number}",
            f"{number} * {name}",
            f"({name} + {number}) * {other}",
        ]
        if self.dividing:
            shapes += [f"1.0 * {name} / {other}", f"{name} / 2.5"]
        return draw.choice(shapes)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
