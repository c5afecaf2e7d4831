"""Jobs on Spark show other people's text escaped, as all commands do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Engine, Schema
from tamis.language import to_text
from tamis.model.condition import Predicate
from tests.unit.cli.calls import Capture, run
from tests.unit.cli.test_printable import HOSTILE, clean

DOCUMENT = {
    "attributes": {"title": "text", "n": "integer"},
    "event_types": {"e": {"title": "mandatory", "n": "optional"}},
}


@pytest.mark.usefixtures("spark")
def test_jobs_show_data_escaped(tmp_path: Path, capsys: Capture) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(DOCUMENT))
    engine = Engine(Schema.from_dict(DOCUMENT))
    condition = to_text(Predicate("title", "=", HOSTILE))
    engine.subscribe(condition, id=HOSTILE)
    engine.save(tmp_path / "engine")
    events, conditions = tmp_path / "events", tmp_path / "conditions.parquet"
    events.mkdir()
    table = pa.table({"title": [HOSTILE, None, "x"], "n": [1, 2, 3]})
    parquet.write_table(table, events / "events.parquet")
    parquet.write_table(pa.table({"id": [HOSTILE], "condition": [condition]}), conditions)
    given = ["--events", str(events), "--schema", str(schema)]
    stats = ["--out", str(tmp_path / "stats"), "--subscriptions", str(tmp_path / "engine")]
    assert run("spark", "stats", *given, *stats) == 0
    clean(capsys.readouterr().out, "[red]bold[/red]", r"\x1b")
    asked = ["--conditions", str(conditions), "--columns", "title"]
    assert run("spark", "backtest", *given, *asked) == 0
    clean(capsys.readouterr().out, "[red]bold[/red]", "1b")
    missing = ["--events", str(tmp_path / f"no{HOSTILE}".replace("/", "")), "--count-only"]
    assert run("spark", "match", *missing, "--subscriptions", str(tmp_path / "engine")) == 2
    clean(capsys.readouterr().err, r"\x1b")
