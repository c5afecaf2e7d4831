"""`tamis spark stats`, and those that read what it writes; and the same through Spark Connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import tamis.spark
from tamis import Engine
from tamis.operators import registry
from tamis.spark.stats.event_stats import gather_stats
from tamis.spark.stats.subscription_stats import match_sample
from tamis.store import Stats, Versions
from tests.connect import Client
from tests.integration.spark.stats_offers import (
    CONDITIONS,
    SCHEMA,
    check,
    good_events,
    quiet_operator,
    saved,
)
from tests.unit.cli.calls import Capture, refused, run

pytestmark = pytest.mark.usefixtures("small_shares")


# -- Spark Connect ---------------------------------------------------------------------------------


def _far(events: Path, engine: Path, out: Path) -> bool:
    """What a client of Spark Connect does; whether it heard of progress."""
    spark, steps = tamis.spark.session(), []
    stats = gather_stats(spark, events, SCHEMA, progress=lambda *each: steps.append(each))
    match_sample(spark, stats, engine, progress=lambda *each: steps.append(each)).save(out)
    return bool(steps)


def test_the_same_through_spark_connect(
    spark: SparkSession,
    client: Client,
    events: tuple[Path, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    engine, out = saved(CONDITIONS, tmp_path / "engine"), tmp_path / "stats"
    assert client.asked(_far, events[0], engine, out)
    there = Stats.open(out)
    here = match_sample(spark, gather_stats(spark, events[0], SCHEMA), engine)
    check(there, events[1])
    assert there.sample.equals(here.sample)
    assert there.subscriptions == here.subscriptions


# -- the command -----------------------------------------------------------------------------------


def test_the_command(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture
) -> None:
    folder, rows = events
    schema = tmp_path / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    saved(CONDITIONS, tmp_path / "engine")
    out = tmp_path / "stats"
    given = ["--events", str(folder), "--schema", str(schema), "--out", str(out)]
    assert run("spark", "stats", *given, "--subscriptions", str(tmp_path / "engine")) == 0
    shown = capsys.readouterr().out
    good = len(good_events(rows))
    assert f"{folder}: {good} events; {len(rows) - good} dead" in shown
    assert "for example: " in shown
    for words in ("seller.rating", "most frequent", "oak (", "5 subscriptions", "pairs an event",
                  "price exists or title exists", f"The statistics are in {out}."):  # fmt: skip
        assert words in shown
    assert {each.name for each in out.iterdir()} == {"stats.json", "sample.parquet"}
    assert not list(tmp_path.glob(".*")), "nothing is left behind"
    assert Stats.open(out).sample.num_rows == good
    assert "holds statistics already" in refused(capsys, "spark", "stats", *given)
    assert run("spark", "stats", *given, "--replace", "--sample", "50", "--seed", "3") == 0
    assert Stats.open(out).sample.num_rows == 50
    capsys.readouterr()

    table = pa.table({"id": list(CONDITIONS), "condition": list(CONDITIONS.values())})
    parquet.write_table(table, tmp_path / "conditions.parquet")
    given = ["--conditions", str(tmp_path / "conditions.parquet"), "--schema", str(schema)]
    index = ["--index", str(tmp_path / "index")]
    said = refused(capsys, "spark", "compile", *given, *index, "--stats", str(folder))
    assert "is not statistics" in said
    assert run("spark", "compile", *given, *index, "--stats", str(out)) == 0
    (shard,) = Versions(tmp_path / "index").all()[0].shard_folders
    assert Engine.open(shard).plan().events == 50
    capsys.readouterr()
    assert run("plan", str(tmp_path / "engine"), "--stats", str(out)) == 0
    assert "planned for 50 events" in capsys.readouterr().out


def test_operators_by_the_command(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    schema, out = tmp_path / "schema.yaml", tmp_path / "stats"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    saved(
        {at: f"quiet() and price < {at}" for at in range(4)},
        tmp_path / "engine",
        [quiet_operator()],
    )
    given = ["--events", str(events[0]), "--schema", str(schema), "--out", str(out)]
    given += ["--subscriptions", str(tmp_path / "engine"), "--asked", "200"]
    assert run("spark", "stats", *given) == 2
    said = capsys.readouterr()
    assert "an operator that is missing" in said.err
    assert "Traceback" not in said.err
    assert Stats.open(out).events == len(good_events(events[1])), "what was counted is not lost"
    module = """
from tamis import operator
@operator(reads=("title",), run="here")
def quiet(title):
    return not title.endswith("3")
"""
    (tmp_path / "quietly.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(tmp_path / "quietly.py"))
    try:
        assert run("spark", "stats", *given, "--replace", "--operators", "quietly") == 0
    finally:
        registry._REGISTERED.pop("quiet", None)
    shown = capsys.readouterr().out
    assert "quiet()" in shown
    assert "a call takes" in shown
    (measured,) = Stats.open(out).predicates.values()
    assert 0.5 < measured.share < 1


def test_what_the_command_refuses(
    spark: SparkSession, events: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: Capture
) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text(SCHEMA.to_yaml(), encoding="utf-8")
    out = ["--out", str(tmp_path / "stats")]
    files = ["--events", str(events[0]), "--schema", str(schema)]
    wrong: list[tuple[list[str], str]] = [
        (out, "give either --events and --schema, or --log"),
        ([*files, "--log", str(tmp_path), *out], "give either --events and --schema, or --log"),
        (["--events", str(events[0]), *out], "give either --events and --schema, or --log"),
        (["--events", "nowhere", "--schema", str(schema), *out], "no such file or folder"),
        (["--log", str(tmp_path / "log"), *out], "is not a log"),
        ([*files, "--subscriptions", "nowhere", *out], "there is no folder of that name"),
        ([*files, "--out", str(tmp_path)], "holds other files than statistics"),
        ([*files, *out, "--sample", "0"], "0 is not in the range"),
    ]
    for given, said in wrong:
        assert said in refused(capsys, "spark", "stats", *given)
    assert not (tmp_path / "stats").exists()
