"""The matchers inside a database: what the conformance suite cannot see."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from typing import Any

import pytest

from tamis import Engine, Schema, workload
from tamis.encode.clause import SOME
from tamis.encode.terms import Row
from tamis.errors import MatcherError
from tamis.match.registry import create
from tamis.match.topss.sql.matcher import SqlMatcher
from tamis.match.topss.sql.statements import statements
from tamis.testing.matcher_checks import add, answers, remove
from tests.running import run_script

ALL = ("sql-sequential", "sql-grouping")
DATABASES = ("duckdb", pytest.param("postgresql", marks=pytest.mark.postgresql))
POINTS: dict[int, list[Row]] = {
    0: [(0, 0, SOME, 5, 5)],
    1: [(0, 0, SOME, 5, 5), (1, 1, SOME, 7, 7)],
    2: [(0, 0, SOME, 6, 6)],
}


def _ask(matcher: object, name: str) -> list[tuple[Any, ...]]:
    assert isinstance(matcher, SqlMatcher)
    return sorted(matcher._tables.ask(name))


def test_every_statement_has_a_name_and_a_sentence() -> None:
    for file in ("sequential", "grouping", "postgresql"):
        text = (files("tamis.match.topss.sql") / f"{file}.sql").read_text("utf-8")
        for part in text.strip().split("\n\n"):
            assert re.match(r"-- \w+( \[\w+\])?\n-- [A-Z].*[^;]\n", part), part
            assert part.endswith(";")
    assert "create_subs_sid" in statements("grouping", "postgresql")
    assert "create_subs_sid" not in statements("grouping", "duckdb")


@pytest.mark.slow
def test_importing_tamis_imports_no_database() -> None:
    code = (
        "import sys, tamis; tamis.matchers(); tamis.Engine;"
        "print([m for m in ('duckdb', 'psycopg') if m in sys.modules])"
    )
    assert run_script(code).stdout == "[]\n"


@pytest.mark.parametrize("database", DATABASES)
def test_grouping_keeps_each_predicate_once(database: str) -> None:
    matcher = create("sql-grouping", database=database)
    add(matcher, POINTS)
    assert _ask(matcher, "compared") == [(0, 2), (1, 1)]
    add(matcher, {3: [(0, 0, SOME, 6, 6)]})
    assert _ask(matcher, "compared") == [(0, 2), (1, 1)]
    remove(matcher, [1, 2])
    assert _ask(matcher, "compared") == [(0, 2)]
    remove(matcher, [3])
    assert _ask(matcher, "compared") == [(0, 1)]
    assert _ask(matcher, "check_preds") == []


@pytest.mark.parametrize("database", DATABASES)
def test_the_tally_counts_rows_or_distinct_predicates(database: str) -> None:
    for name, compared in (("sql-sequential", 4 + 2), ("sql-grouping", 3 + 2)):
        matcher = create(name, database=database)
        add(matcher, POINTS)
        answers(matcher, [{0: [5], 1: [7]}, {0: [6], 2: [1]}, {9: [1]}])
        expected = compared + (1 if name == "sql-sequential" else 0)
        assert matcher.tally.predicates == expected


@pytest.mark.parametrize("database", DATABASES)
def test_a_batch_is_cut_where_one_statement_would_compare_too_much(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = create("sql-sequential", database=database)
    add(matcher, POINTS)
    events = [{0: [5 + i % 2], 1: [7]} for i in range(10)]
    whole = answers(matcher, events)
    assert matcher.tally.nodes == 1
    monkeypatch.setattr("tamis.match.topss.sql.matcher._COMPARISONS", 12)
    assert answers(matcher, events) == whole == [{0, 1}, {2}] * 5
    assert matcher.tally.nodes == 1 + 4


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("name", ALL)
def test_matchers_do_not_see_each_other(name: str, database: str) -> None:
    one, other = create(name, database=database), create(name, database=database)
    add(one, POINTS)
    add(other, {7: [(0, 0, SOME, 5, 5)]})
    assert answers(one, [{0: [5]}]) == [{0}]
    assert answers(other, [{0: [5]}]) == [{7}]


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("name", ALL)
def test_what_the_database_refuses_leaves_the_matcher_as_it_was(name: str, database: str) -> None:
    matcher = create(name, database=database)
    assert isinstance(matcher, SqlMatcher)
    add(matcher, POINTS)
    broken = {**matcher._tables._statements, "insert_zzz": "INSERT INTO nowhere SELECT 1"}
    matcher._tables._statements, kept = broken, matcher._tables._statements
    with pytest.raises(MatcherError, match=f"{database} failed: .*nowhere.*Nothing was changed"):
        add(matcher, {3: [(0, 0, SOME, 5, 5)]})
    matcher._tables._statements = kept
    matcher.check()
    assert answers(matcher, [{0: [5]}]) == [{0}]
    add(matcher, {3: [(0, 0, SOME, 5, 5)]})
    assert answers(matcher, [{0: [5]}]) == [{0, 3}]


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("name", ALL)
def test_topss_w4_agrees_with_counting(name: str, database: str) -> None:
    """Enough rows for statistics and storage to be looked after, in bulk and one by one."""
    made = workload.make("topss", 2000, seed=5, setting="W4")
    schema = Schema.from_dict(made.schema)
    inside, outside = Engine(schema, name, database=database), Engine(schema, "counting-list")
    for engine in (inside, outside):
        engine.subscribe_table(made.subscriptions)
        for id in range(100, 140):
            engine.unsubscribe(id)
    events = made.events(10)
    found, right = inside.match_batch(events), outside.match_batch(events)
    assert [set(ids) for ids in found] == [set(ids) for ids in right]
    inside.check()


@pytest.mark.postgresql
def test_a_matcher_takes_its_connection_with_it(postgresql: str) -> None:
    import psycopg

    matcher = create("sql-grouping", database="postgresql", dsn=postgresql)
    add(matcher, POINTS)
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    with psycopg.connect(postgresql, autocommit=True) as observer:
        sessions = observer.execute(count).fetchall()[0][0]
        del matcher
        observer.execute("SELECT pg_sleep(0.2)")
        assert observer.execute(count).fetchall()[0][0] < sessions


def test_threads_are_for_duckdb() -> None:
    matcher = create("sql-sequential", threads=2)
    add(matcher, POINTS)
    assert answers(matcher, [{0: [5], 1: [7]}]) == [{0, 1}]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dsn": "host=x"}, "set database='postgresql' as well"),
        ({"threads": 2, "database": "postgresql"}, "threads is for DuckDB"),
        (
            {"database": "postgresql"},
            "no PostgreSQL connection is given; set the option dsn or .*TAMIS",
        ),
        (
            {"database": "postgresql", "dsn": "host=/nowhere connect_timeout=2"},
            "cannot open a PostgreSQL session: ",
        ),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAMIS_POSTGRESQL", raising=False)
    with pytest.raises(MatcherError, match=says):
        create("sql-grouping", **options)


def test_a_database_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "tamis.match.topss.sql.duck", raising=False)
    with pytest.raises(
        MatcherError, match=r"duckdb is not installed; run pip install 'tamis\[sql\]'"
    ):
        create("sql-sequential")
