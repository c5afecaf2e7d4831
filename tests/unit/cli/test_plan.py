"""`tamis plan`: of a workload, of a saved engine, of files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tamis import Engine, Schema
from tests.unit.cli.calls import Capture, refused, run

SCHEMA = "attributes: {price: integer, title: text, code: text}\n"
MANY = 1500


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "lots.yaml"
    path.write_text(SCHEMA, encoding="utf-8")
    return str(path)


def _subscriptions() -> pa.Table:
    half = MANY // 2
    conditions = [f"price = {number}" for number in range(half)]
    conditions += [f"price > {number} and title = old" for number in range(half)]
    return pa.table({"id": list(range(MANY)), "condition": conditions})


def _events() -> pa.Table:
    return pa.table(
        {
            "price": list(range(100)),
            "title": ["old", None] * 50,
            "code": [f"{number:03}" for number in range(100)],
        }
    )


def _write(table: pa.Table, path: Path) -> str:
    objects = [  # JSON has no null here: an attribute that is not bound is left out
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
    match path.suffix:
        case ".parquet":
            parquet.write_table(table, path)
        case ".csv":
            csv.write_csv(table, path)
        case ".arrow" | ".ipc":
            make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
            with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as out:
                out.write_table(table)
        case ".jsonl":
            path.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        case _:
            path.write_text(json.dumps(objects), encoding="utf-8")
    return str(path)


def _saved(tmp_path: Path, matcher: str = "tamis") -> str:
    engine = Engine(Schema.from_dict({"attributes": {"price": "integer"}}), matcher)
    for number in range(MANY):
        engine.subscribe(f"price = {number}")
    engine.subscribe("price < 9 or price > 7", id="both")
    engine.match_batch([{"price": number} for number in range(200)])
    engine.save(tmp_path / "saved")
    return str(tmp_path / "saved")


def test_a_workload(capsys: Capture) -> None:
    size = ("--subscriptions", "2e3", "--events", "300", "--seed", "5")
    assert run("plan", "--workload", "lesubscribe", *size) == 0
    out = capsys.readouterr().out
    for part in (
        "lesubscribe, seed 5: 2,000 subscriptions",
        "2,000 clauses, planned for 300 events",
        "expected ",
        "measured now ",
        "300 events at once",
        "look-ups",
        "a6 ",
        "costs, in ns: probe ",
    ):
        assert part in out, out
    assert "\x1b" not in out, "plain where there is no terminal"
    assert max(map(len, out.splitlines())) <= 120


def test_as_json(capsys: Capture) -> None:
    size = ("--subscriptions", "2000", "--events", "200")
    assert run("plan", "--workload", "dexin", *size, "--json", "--id", "7") == 0
    found = json.loads(capsys.readouterr().out)
    plan = found["plan"]
    assert plan["clauses"] == sum(route["clauses"] for route in plan["routes"]) == 2000
    assert plan["events"] == 200
    assert len(plan["choices"]) == 1
    assert found["measured_now"]["events"] == 200
    assert found["measured_now"]["us"] > 0
    assert found["of"] == "dexin, seed 1"


def test_a_wide_workload_has_few_lines(capsys: Capture) -> None:
    size = ("--subscriptions", "3000", "--events", "200", "--lines", "2")
    assert run("plan", "--workload", "sparse", *size) == 0
    out = capsys.readouterr().out
    assert " more values" in out
    assert len(out.splitlines()) < 60


def test_a_saved_engine(tmp_path: Path, capsys: Capture) -> None:
    saved = _saved(tmp_path)
    assert run("plan", saved, "--id", "both") == 0
    out = capsys.readouterr().out
    assert "1,502 clauses, planned for 200 events" in out
    assert "measured now" not in out, "without events there is nothing to measure"
    assert "value of price" in out
    assert "clause 2 of 2 lies in" in out
    events = _write(pa.table({"price": [1, 2, 3]}), tmp_path / "events.parquet")
    assert run("plan", saved, "--events", events, "--id", "12") == 0
    out = capsys.readouterr().out
    assert "3 events at once" in out
    assert "the clause lies in" in out
    scan = tmp_path / "scan"
    scan.mkdir()
    assert "makes no plan" in refused(capsys, "plan", _saved(scan, "scan"))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "ipc", "csv", "jsonl", "json"])
def test_files(schema: str, tmp_path: Path, ending: str, capsys: Capture) -> None:
    subscriptions = _write(_subscriptions(), tmp_path / f"subscriptions.{ending}")
    events = _write(_events(), tmp_path / f"events.{ending}")
    given = ("--schema", schema, "--subscriptions", subscriptions, "--events", events)
    assert run("plan", *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["clauses"] == MANY
    # Each event has its price, and every other one is old, with all lower prices.
    assert found["measured_now"]["matches"] == pytest.approx(1 + 49 / 2)


def test_names_that_the_schema_ignores_are_shown(
    schema: str, tmp_path: Path, capsys: Capture
) -> None:
    subscriptions = _write(_subscriptions(), tmp_path / "subscriptions.parquet")
    table = _events().append_column("prise", pa.array([None] * 40 + [1.5] * 60))
    events = _write(table, tmp_path / "events.parquet")
    given = ("--schema", schema, "--subscriptions", subscriptions, "--events", events)
    assert run("plan", *given) == 0
    assert "does not know, ignored: prise (60)" in " ".join(capsys.readouterr().out.split())
    assert run("plan", *given, "--json") == 0
    assert json.loads(capsys.readouterr().out)["ignored"] == {"prise": 60}


def test_own_data_without_events(schema: str, tmp_path: Path, capsys: Capture) -> None:
    subscriptions = _write(_subscriptions(), tmp_path / "subscriptions.csv")
    assert run("plan", "--schema", schema, "--subscriptions", subscriptions) == 0
    out = capsys.readouterr().out
    assert "planned for no events yet" in out
    assert "expected" in out
    assert "measured" not in out
    empty = _write(_subscriptions().slice(0, 0), tmp_path / "none.parquet")
    assert run("plan", "--schema", schema, "--subscriptions", empty) == 0
    assert "no clauses to place" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of FOLDER, --workload and --schema"),
        (("folder", "--workload", "dexin"), "one of FOLDER, --workload and --schema"),
        (("--workload", "dexim"), "did you mean 'dexin'"),
        (("--workload", "dexin", "--subscriptions", "many"), "not a whole number from 1"),
        (("--workload", "dexin", "--subscriptions", "1e300"), "not a whole number from 1"),
        (("--workload", "dexin", "--subscriptions", "1.5"), "not a whole number from 1"),
        (("--workload", "dexin", "--events", "0"), "not a whole number from 1"),
        (
            ("--workload", "dexin", "--subscriptions", "100", "--id", "you"),
            "no subscription has the id 'you'",
        ),
        (("nowhere",), "nowhere"),
        (("nowhere", "--subscriptions", "5"), "has its own"),
        (("--schema", "nowhere.yaml", "--subscriptions", "5.csv"), "nowhere.yaml"),
        (("--schema", "nowhere.yaml"), "--subscriptions as well"),
    ],
)
def test_wrong_calls(arguments: tuple[str, ...], said: str, capsys: Capture) -> None:
    assert said in refused(capsys, "plan", *arguments)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "", ".parquet"),
        ("none.csv", None, "none.csv"),
        ("a.parquet", "no parquet", "a.parquet: is not valid parquet"),
        ("a.arrow", "no arrow", "a.arrow: is not valid arrow"),
        ("a.csv", "id,condition\n1", "a.csv, line 2: has 1 field, expected 2"),
        ("a.csv", "number,condition\n1,price < 5\n", "no column 'id'"),
        ("a.csv", "id,condition\n1,prise < 5\n", "did you mean 'price'"),
        ("a.jsonl", '{"id": 1, "condition": "price <"}\n{', "a.jsonl, line 2"),
        ("a.jsonl", '{"id": 1}\n5\n', "a.jsonl"),
        ("a.json", "[", "a.json"),
    ],
)
def test_files_that_cannot_be_read(
    schema: str, tmp_path: Path, name: str, text: str | None, said: str, capsys: Capture
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert said in refused(capsys, "plan", "--schema", schema, "--subscriptions", str(path))


def test_events_that_do_not_fit(schema: str, tmp_path: Path, capsys: Capture) -> None:
    subscriptions = _write(_subscriptions(), tmp_path / "subscriptions.csv")
    events = _write(pa.table({"prise": [1]}), tmp_path / "events.csv")
    given = ("--schema", schema, "--subscriptions", subscriptions, "--events", events)
    text = Path(schema).read_text(encoding="utf-8")
    Path(schema).write_text(f"{text}unknown: refuse\n", encoding="utf-8")
    assert "did you mean 'price'" in refused(capsys, "plan", *given)
    (tmp_path / "events.parquet").mkdir()
    assert "the folder has no files" in refused(
        capsys, "plan", *given[:-1], str(tmp_path / "events.parquet")
    )


@pytest.mark.parametrize("at", [-30, -8])
def test_damaged_arrow_files_are_named(
    schema: str, tmp_path: Path, capsys: Capture, at: int
) -> None:
    path = Path(_write(_subscriptions(), tmp_path / "subscriptions.arrow"))
    data = bytearray(path.read_bytes())
    data[at : at + 8 or None] = b"\xff" * 8
    path.write_bytes(data)
    given = ("--schema", schema, "--subscriptions", str(path))
    assert str(path) in refused(capsys, "plan", *given)
