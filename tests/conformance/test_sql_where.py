"""WHERE clauses mean here what they mean in DuckDB, on generated clauses and events.

TAMIS_SQL_WHERE is the number of pairs; `make soak CAMPAIGNS=sql-where` asks for more.
"""

from __future__ import annotations

import os

import pytest

from tamis import Engine
from tamis.errors import NeverTrueError
from tamis.language import read
from tamis.model.semantics import satisfies
from tests.campaign import campaign
from tests.sql_conditions import SCHEMA, DuckTable, random_rows, random_where

PAIRS = int(os.environ.get("TAMIS_SQL_WHERE", "10000"))
CLAUSES, EVENTS = 50, 100  # of a round


@pytest.mark.slow
def test_clauses_match_what_duckdb_says() -> None:
    matches = never = 0
    with campaign("sql-where") as running:
        while running.tried < PAIRS:
            clauses = [random_where(running.draw) for _ in range(CLAUSES)]
            events = random_rows(running.draw, EVENTS)
            engine = Engine(SCHEMA)
            for number, clause in enumerate(clauses):
                try:
                    engine.subscribe(clause, id=number, language="sql")
                except NeverTrueError:
                    never += 1
            found = [set(ids) for ids in engine.match_batch(events)]
            table = DuckTable(events)
            for number, clause in enumerate(clauses):
                right = table.matches(clause)
                ours = {at for at, ids in enumerate(found) if number in ids}
                assert ours == right, f"{clause} on {events[min(ours ^ right)]}"
                matches += len(right)
            one = running.draw.randrange(CLAUSES)  # the definition of truth is slow
            if one in engine:
                condition = read(clauses[one], SCHEMA, language="sql")
                assert table.matches(clauses[one]) == {
                    at for at, event in enumerate(events) if satisfies(condition, event, SCHEMA)
                }
            table.close()
            running.tried += CLAUSES * EVENTS
    assert running.tried / 20 < matches < running.tried / 2
    assert never < running.tried / EVENTS / 4, "most clauses can be true"
