"""All constructs of real events in Spark: a log whose domains grow, against the semantics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.language import parse, to_text
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tamis.spark.jobs.compile_index import compile_log
from tamis.store import Log, Versions, subscribe
from tamis.testing import cases
from tamis.testing.constructs import COMPARISONS, DYNAMIC, ELEMENTS, constructs_of


def drawn(chooser: cases.RandomChooser, schema: Schema, number: int) -> list[str]:
    """Conditions that the schema takes, as text."""
    found: list[str] = []
    engine = Engine(schema)
    while len(found) < number:
        condition = cases.condition(chooser, schema=schema)
        try:
            engine.subscribe(condition)
        except NeverTrueError:
            continue
        found.append(to_text(condition))
    assert len(engine.residuals) > 2
    used = {each for text in found for each in constructs_of(parse(text), schema)}
    assert used >= {COMPARISONS, DYNAMIC, ELEMENTS}
    return found


def lines(chooser: cases.RandomChooser, schema: Schema) -> list[dict[str, Any]]:
    events = [cases.event(chooser, schema) for _ in range(20)]
    for event in events:
        event.pop("picture", None)  # bytes are not JSON
    return events


@pytest.mark.slow
def test_a_log_with_all_constructs_means_what_satisfies_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    chooser = cases.RandomChooser(21)
    schema = cases.SCHEMA
    log, versions = Log.create(tmp_path / "log", schema), Versions(tmp_path / "index")
    live: dict[str, str] = {}
    right: set[tuple[int, str]] = set()
    for step in range(2):
        texts = {f"{step}-{at}": text for at, text in enumerate(drawn(chooser, schema, 30))}
        log.change(subscribe(list(texts), list(texts.values())))
        live |= texts
        if not step:
            compile_log(spark, log, versions, shards=2)
        events = lines(chooser, schema)
        first = log.end
        log.publish(pa.table({"json": [json.dumps(event) for event in events]}))
        conditions = {id: parse(text) for id, text in live.items()}
        right |= {
            (first + at, id)
            for at, event in enumerate(events)
            for id, condition in conditions.items()
            if satisfies(condition, event, schema)
        }
        if not step:
            schema = cases.grown(chooser, schema)
            log.extend(schema)
    read = spark.read.format("tamis").option("index", str(versions.folder))
    rows = read.load(str(log.folder)).collect()
    assert {row.sequence for row in rows if row.reason is not None} == set()
    assert {(row.sequence, row.subscription) for row in rows} == right
    assert len(right) > 200
