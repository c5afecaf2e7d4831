"""The lab's measuring tools: what they compute, not how fast anything is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tamis import Engine, Schema, TamisError, workload
from tamis.lab import foundation, matching
from tamis.lab.results import Contest, Figure, Goal, write
from tamis.lab.setting import Setting
from tamis.lab.timing import Sample, fitting, repeated
from tamis.lab.yardstick import Yardstick
from tamis.match import registry
from tamis.workload.tables import SUBSCRIPTIONS_SCHEMA


@pytest.mark.parametrize("name", ["dexin", "lesubscribe", "topss", "gryphon"])
def test_the_yardstick_agrees_with_the_engine(name: str) -> None:
    made = workload.make(name, 400, seed=3)
    events = made.events(60)
    engine = Engine(Schema.from_dict(made.schema))
    engine.subscribe_table(made.subscriptions)
    yardstick = Yardstick(made.subscriptions, events)
    answers = [yardstick.match(event).tolist() for event in yardstick.encode(events)]
    assert [sorted(ids) for ids in engine.match_batch(events)] == answers
    assert any(answers)


def test_the_yardstick_at_the_ends() -> None:
    """Null fails whatever is constrained, and only that; values between constants count."""
    rows = [
        [("a", ">", 1.0)],
        [("a", "<=", 1.0), ("b", "!=", 5.0)],
        [("b", "!=", 5.0)],
        [("a", "=", 2.0)],
        [("a", ">=", 1.0), ("a", "<", 2.0)],
        [],
    ]
    keys = ("attribute", "comparator", "value")
    predicates = [[dict(zip(keys, each, strict=True)) for each in row] for row in rows]
    table = pa.table({"id": range(6), "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)
    events = pa.table({"a": [None, 0.5, 1.0, 1.5, 2.0, 9.0], "b": [5.0, 5.0, 6.0, None, 5.0, 4.0]})
    yardstick = Yardstick(table, events)
    found = [yardstick.match(event).tolist() for event in yardstick.encode(events)]
    assert found == [[5], [5], [1, 2, 4, 5], [0, 4, 5], [0, 3, 5], [0, 2, 5]]


def test_the_yardstick_keeps_columns_narrow() -> None:
    made = workload.make("dexin", 200, seed=1, cardinality=100)
    yardstick = Yardstick(made.subscriptions, made.events(5))
    assert {column.low.dtype for column in yardstick._columns} == {np.dtype(np.uint8)}


def test_the_yardstick_refuses_what_it_cannot_do() -> None:
    predicates = [[{"attribute": "a", "comparator": "starts with", "text": "x"}]]
    table = pa.table({"id": [0], "predicates": predicates}, schema=SUBSCRIPTIONS_SCHEMA)
    with pytest.raises(TamisError, match="starts with"):
        Yardstick(table, pa.table({"a": ["x"]}))


def test_a_wrong_matcher_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yardstick, "match", lambda self, event: np.array([7]))
    with pytest.raises(TamisError, match="disagree"):
        list(matching.contests(Setting(matchers=("naive",)).quick()))


def test_repeated_stops_at_its_budget() -> None:
    assert repeated(lambda: None, repeats=4, budget=10).repeats == 4
    assert repeated(lambda: None, repeats=4, budget=0).repeats == 1


def test_repeated_prepares_each_time() -> None:
    calls: list[str] = []
    repeated(
        lambda: calls.append("run"), repeats=2, budget=10, prepare=lambda: calls.append("prepare")
    )
    assert calls == ["prepare", "run", "prepare", "run"]


def test_fitting_is_at_least_one_and_at_most_what_is_asked_for() -> None:
    assert fitting(lambda: None, most=5, budget=100) == 5
    assert fitting(lambda: None, most=5, budget=0) == 1


def test_goals() -> None:
    assert Goal(30, at_most=True).met(30)
    assert not Goal(30, at_most=True).met(31)
    assert Goal(30, at_most=False).met(31)
    assert not Goal(30, at_most=False).met(29)


def test_a_rate_is_lowest_where_time_is_longest() -> None:
    figure = Figure.rate("x", "y", Sample(2.0, 1.0, 4.0, 3), 8, size=1)
    assert (figure.value, figure.low, figure.high) == (4.0, 2.0, 8.0)
    assert figure.parameters == {"size": 1}


@pytest.mark.parametrize("name", foundation.MEASUREMENTS)
def test_measurements_give_as_many_results_as_they_say(name: str) -> None:
    setting = Setting().quick()
    measurement = foundation.MEASUREMENTS[name]
    results = list(measurement.run(setting))
    assert len(results) == measurement.steps(setting)
    assert {result.measurement for result in results} == {name}


def test_contests_cover_all_matchers() -> None:
    found = list(matching.contests(Setting().quick()))
    assert [each.matcher for each in found[: 1 + len(registry.matchers())]] == [
        matching.YARDSTICK,
        *registry.matchers(),
    ]
    measured = [each for each in found if isinstance(each, Contest)]
    assert all(each.bytes_each for each in measured if each.matcher != matching.YARDSTICK)


def test_measurements_are_chosen_by_name() -> None:
    assert [each.name for each in foundation.chosen(["match", "parse"])] == ["parse", "match"]
    assert len(foundation.chosen([])) == len(foundation.MEASUREMENTS)
    with pytest.raises(TamisError, match="did you mean 'parse'"):
        foundation.chosen(["parce"])


def test_result_files_say_where_they_come_from(tmp_path: Path) -> None:
    figure = Figure("x", "what", 1.5, "s", 1.0, 2.0, 3, Goal(2.0, at_most=True))
    contest = Contest("match", "w", "naive", 10, 1.0, 0.5, 100, 7, 3.0, 2.0, 4.0)
    moment = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    path = write(tmp_path / "a" / "b", [figure, contest], {"seed": 4}, moment)
    assert path.name == "20260131T120000Z.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"] == {"seed": 4}
    assert document["machine"].keys() == {"cpus", "cpu", "system", "python"}
    assert [each["kind"] for each in document["results"]] == ["figure", "contest"]
    assert document["results"][0]["goal"] == {"limit": 2.0, "at_most": True}
