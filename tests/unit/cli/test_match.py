"""`tamis match`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tamis import Schema, TamisError
from tamis.cli.data.events import all_events
from tests.unit.cli.calls import Capture, refused, run
from tests.unit.cli.lots import EVENTS, PAIRS, given, pairs


def test_lines_to_lines(world: Path, capsys: Capture) -> None:
    assert run(*given(world)) == 0
    out, err = capsys.readouterr()
    assert pairs(out) == PAIRS
    assert "3 events in " in err
    assert "5 matches with 4 subscriptions; 3 events matched, 0 did not" in err


CSV = (
    "price,title,sold,lot,at,tags,comment\r\n"
    "3.5,old oak,True,7.0,2026-01-31T12:00:00Z,,x\r\n"
    '12,,,,,"[""oak"", ""old""]",\r\n'
    '4,"a, b",FALSE,,,,\r\n'
)


@pytest.mark.parametrize(
    "name",
    ["lots.csv", "lots.tsv", "lots.parquet", "lots.arrow", "lots.ipc", "lots.json", "one.json"],
)
def test_formats(world: Path, name: str, capsys: Capture) -> None:
    path, suffix = world / name, name.rpartition(".")[2]
    table = pa.Table.from_pylist([{"tags": None, "comment": "x", **each} for each in EVENTS])
    if suffix == "csv":
        path.write_text(CSV, encoding="utf-8")
    elif suffix == "tsv":
        rows = csv.read_csv(pa.BufferReader(CSV.encode()))
        options = csv.WriteOptions(delimiter="\t")
        csv.write_csv(rows, path, options)
    elif suffix == "parquet":
        parquet.write_table(table, path)
    elif suffix == "json":
        document = EVENTS if name == "lots.json" else EVENTS[0]
        path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    else:
        make = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as out:
            out.write_table(table)
    assert run(*given(world, name), "--bad", "refuse") == 0
    said = capsys.readouterr()
    assert pairs(said.out) == (PAIRS[:2] if name == "one.json" else PAIRS)
    if suffix != "json":
        assert "not in the schema, and ignored: comment" in said.err


def test_a_folder_of_events(world: Path, capsys: Capture) -> None:
    folder = world / "lots"
    folder.mkdir()
    (world / "lots.jsonl").rename(folder / "a.jsonl")
    (folder / "b.csv").write_text("price\n1\n", encoding="utf-8")
    assert run(*given(world, "lots")) == 0
    assert pairs(capsys.readouterr().out) == [*PAIRS, (3, "cheap")]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_out(world: Path, suffix: str, capsys: Capture) -> None:
    out = world / f"found.{suffix}"
    out.write_text("before", encoding="utf-8")
    assert run(*given(world), "--out", str(out), "--id", "lot", "--columns", "at,tags") == 0
    assert capsys.readouterr().out == ""
    if suffix == "jsonl":
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert {"event": 7, "subscription": "sold", "at": "2026-01-31T12:00:00Z"} in rows
        assert {"subscription": "oak", "tags": ["oak", "old"]} in rows
    elif suffix == "csv":
        table = csv.read_csv(out)
        assert table["tags"].to_pylist().count('["oak", "old"]') == 1
    else:
        table = parquet.read_table(out)
        assert table.column_names == ["event", "subscription", "at", "tags"]
        assert table.num_rows == len(PAIRS)
    assert not list(world.glob(".*"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_no_events(world: Path, suffix: str, capsys: Capture) -> None:
    (world / "lots.jsonl").write_text("\n", encoding="utf-8")
    out = world / f"found.{suffix}"
    assert run(*given(world), "--out", str(out), "--columns", "price") == 0
    if suffix == "parquet":
        assert parquet.read_table(out).column_names == ["event", "subscription", "price"]
    assert "0 events" in capsys.readouterr().err
    (world / "lots.jsonl").write_text("no event\n", encoding="utf-8")
    assert run(*given(world), "--out", str(out), "--columns", "tags", "--bad", "skip") == 0


def test_bad_events(world: Path, capsys: Capture) -> None:
    (world / "lots.csv").write_text(
        "price,lot\n1,1\nNA,1\n2,1.5\n,3\n5,6,7\n\n4,9\n", encoding="utf-8"
    )
    arguments = given(world, "lots.csv")
    out = world / "found.csv"
    said = refused(capsys, *arguments, "--out", str(out))
    assert f"{world / 'lots.csv'}, line 3: 'price': 'NA' is not a number" in said
    assert "--absent NA" in said
    assert "--bad skip" in said
    assert not out.exists()

    assert run(*arguments, "--bad", "skip") == 0
    found, err = capsys.readouterr()
    assert pairs(found) == [(0, "cheap"), (5, "cheap")]
    assert "4 events are bad:" in err
    assert "1 × 'lot': 1.5 is not a whole number" in err
    assert "line 5)" in err

    assert run(*arguments, "--bad", "report") == 1
    found, err = capsys.readouterr()
    assert pairs(found) == [(0, "cheap"), (5, "cheap")]
    for line in (3, 4, 5, 6):
        assert f"{world / 'lots.csv'}, line {line}: " in err

    # Absent, it is still mandatory.
    assert "is mandatory" in refused(capsys, *arguments, "--absent", "NA")


def test_a_row_of_empty_cells_is_an_event(world: Path, capsys: Capture) -> None:
    (world / "schema.yaml").write_text("attributes: {price: decimal, title: text}", "utf-8")
    (world / "lots.csv").write_text("price,title\n,\n\n1,\n", encoding="utf-8")
    (world / "wanted.csv").write_text("cheap,price < 5\nnone,price missing\n", encoding="utf-8")
    assert run(*given(world, "lots.csv")) == 0
    assert pairs(capsys.readouterr().out) == [(0, "none"), (1, "cheap")]


def test_bad_lines(world: Path, capsys: Capture) -> None:
    (world / "lots.jsonl").write_bytes(b'\n{"price": 1}\n{"price": "x"}\n\xff\n[]\n{"price": 2}')
    assert run(*given(world), "--bad", "report") == 1
    found, err = capsys.readouterr()
    assert pairs(found) == [(0, "cheap"), (4, "cheap")]
    for line, why in ((3, "is text"), (4, "not UTF-8"), (5, "an event is an object")):
        assert any(f"line {line}: " in each and why in each for each in err.splitlines()), err


def test_wrong_subscriptions(world: Path, capsys: Capture) -> None:
    with (world / "wanted.csv").open("a", encoding="utf-8") as file:
        file.write("cut,price > 1,000\nwrong,prise < 5\n")
    assert run(*given(world)) == 0
    out, err = capsys.readouterr()
    assert pairs(out) == PAIRS
    assert "2 of 6 subscriptions were refused:" in err
    assert "line 6: has 3 fields" in err
    assert "line 7: unknown attribute 'prise'" in err
    assert "--strict takes all or nothing" in refused(capsys, *given(world), "--strict")


def test_explain(world: Path, capsys: Capture) -> None:
    assert run(*given(world), "--explain", "oak") == 0
    out = capsys.readouterr().out
    assert f"event 1 ({world / 'lots.jsonl'}, line 2)\nmatches\n  yes  tags = oak" in out
    assert "does not match\n  no   tags = oak: tags is not bound" in out
    assert "1 of 3 events matches oak: tags = oak" in out
    assert "did you mean 'oak'" in refused(capsys, *given(world), "--explain", "oka")
    assert "--out" in refused(capsys, *given(world), "--explain", "oak", "--out", "x.csv")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--events", "nowhere.csv"), "there is no such file or folder"),
        (("--events", "empty"), "the folder has no files"),
        (("--events", "junk.parquet"), "is not valid parquet"),
        (("--events", "junk.arrow"), "is not valid arrow"),
        (("--events", "junk.csv"), "junk.csv, line 1: "),
        (("--events", "junk.jsonl"), "junk.jsonl, line 1: "),
        (("--events", "zero.csv"), "is empty"),
        (("--events", "zero.parquet"), "is not valid parquet"),
        (("--events", "zero.arrow"), "is not valid arrow"),
        (("--events", "schema.yaml"), "the format is unknown"),
        (("--events", "other.csv"), "expected the names of attributes, got a, b"),
        (("--events", "twice.csv"), "two columns are named 'price'"),
        (("--subscriptions", "junk.csv"), "no subscription left"),
        (("--subscriptions", "zero.csv"), "zero.csv: has no subscriptions"),
        (("--subscriptions", "wanted.csv.gz"), "is compressed; unpack it first"),
        (("--events", "semicolons.csv"), "has ',' between columns, not ';'"),
        (("--schema", "nowhere.yaml"), "nowhere.yaml"),
        (("--schema", "empty"), "is a directory"),
        (("--schema", "junk.csv"), "junk.csv"),
        (("--out", "nowhere/found.csv"), "there is no such folder"),
        (("--out", "empty"), "the format is unknown"),
        (("--out", "found.xlsx"), "the format is unknown"),
        (("--out", "wanted.csv"), "is read by this command"),
        (("--columns", "titel"), "no column 'titel'; did you mean 'title'"),
        (("--columns", "event"), "'event' is a column of the matches"),
        (("--id", "nothing"), "no column 'nothing'"),
        (("--bad", "ignore"), "'ignore' is not one of"),
        (("--operators", "no_such_module"), "cannot be imported"),
    ],
)
def test_mistakes(
    world: Path,
    arguments: tuple[str, str],
    said: str,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(world)
    (world / "empty").mkdir()
    junk = bytes(range(256)) * 40
    for name in ("junk.parquet", "junk.arrow", "junk.csv", "junk.jsonl"):
        (world / name).write_bytes(junk)
    for name in ("zero.csv", "zero.parquet", "zero.arrow", "wanted.csv.gz"):
        (world / name).touch()
    (world / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (world / "semicolons.csv").write_text("price;title\n1;a\n", encoding="utf-8")
    (world / "twice.csv").write_text("price,price\n1,2\n", encoding="utf-8")
    assert said in refused(capsys, *given(world), *arguments)


def test_lists_of_structs(world: Path, capsys: Capture) -> None:
    (world / "schema.yaml").write_text(
        "attributes: {n: integer, items: {kind: structs, attributes: {sku: text, qty: integer}}}\n",
        encoding="utf-8",
    )
    (world / "wanted.csv").write_text(
        "two,some item in items (item.sku = A1 and item.qty >= 2)\n", encoding="utf-8"
    )
    (world / "orders.csv").write_text(
        'n,items\n1,"[{""sku"": ""A1"", ""qty"": 1}, {""sku"": ""B"", ""qty"": 2}]"\n'
        '2,"[{""sku"": ""A1"", ""qty"": 2}]"\n3,\n',
        encoding="utf-8",
    )
    assert run(*given(world, "orders.csv"), "--id", "n", "--columns", "items") == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["event"] == 2


OPEN: list[dict[str, Any]] = [
    {"action": "opened", "issue": {"number": 7, "labels": ["bug", "ui"]}, "n": 5},
    {"action": "closed", "issue": {"number": "7"}, "n": None},
    {"other": [1, {"a": 2}]},
]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_without_a_schema(world: Path, suffix: str, capsys: Capture) -> None:
    path = world / f"open.{suffix}"
    expected = [(0, "five"), (0, "labels"), (0, "seven"), (1, "null"), (1, "text"), (2, "null")]
    if suffix == "csv":
        path.write_text(
            'action,issue.number,issue.labels,n\nopened,7,"[""bug"", ""ui""]",5\n'
            'closed,"""7""",,null\n,,,\nx,007,True,0\n',
            encoding="utf-8",
        )
    elif suffix == "parquet":
        parquet.write_table(pa.Table.from_pylist(OPEN[:1]), path)
        expected = expected[:3]
    elif suffix == "json":
        path.write_text(json.dumps(OPEN, indent=1), encoding="utf-8")
    else:
        path.write_text("\n".join(map(json.dumps, OPEN)), encoding="utf-8")
    (world / "any.csv").write_text(
        "seven,issue.number = 7\nlabels,issue.labels contains bug\nfive,n > 4\nnull,n is null\n"
        'text,"issue.number = ""7"""\n',
        encoding="utf-8",
    )
    given = ("match", "--subscriptions", str(world / "any.csv"), "--events", str(path))
    assert run(*given) == 0
    assert pairs(capsys.readouterr().out) == expected
    assert run(*given, "--columns", "issue.number") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {str(row["issue.number"]) for row in rows if row["event"] < 2} == {"7"}
    assert run(*given, "--explain", "seven") == 0
    said = capsys.readouterr().out
    assert "yes  issue.number = 7: issue.number is 7" in said


def test_a_line_that_never_ends(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.cli.data.events._LONGEST", 1000)
    monkeypatch.setattr("tamis.cli.data.events._BLOCK", 100)
    (world / "lots.jsonl").write_text('{"price": 1}\n' + "x" * 5000, encoding="utf-8")
    with pytest.raises(TamisError, match="line 2: is longer than"):
        all_events(world / "lots.jsonl", Schema.load(world / "schema.yaml"))


def test_explain_names_the_place_of_a_wrong_subscription(world: Path, capsys: Capture) -> None:
    (world / "wrong.csv").write_text("id,condition\nbob,price < 5\nann,prise < 5\n")
    err = refused(capsys, *given(world, wanted="wrong.csv"), "--explain", "ann")
    assert err.startswith(f"tamis: {world}/wrong.csv, line 3: unknown attribute 'prise'")


@pytest.mark.parametrize("option", ["--id", "--columns"])
def test_a_column_that_no_event_has_is_reported(world: Path, option: str, capsys: Capture) -> None:
    files = ["--subscriptions", f"{world}/wanted.csv", "--events", f"{world}/lots.jsonl"]
    assert run("match", *files, option, "titel") == 0
    assert "no event that matched has 'titel'" in capsys.readouterr().err
    assert run("match", *files, option, "titel", "--json") == 0
    assert json.loads(capsys.readouterr().err)["unseen"] == ["titel"]
    assert run("match", *files, option, "title", "--json") == 0
    assert json.loads(capsys.readouterr().err)["unseen"] == []


def test_another_separator_is_named(world: Path, capsys: Capture) -> None:
    (world / "semicolons.csv").write_text("id;condition\nann;price < 5\n")
    err = refused(capsys, *given(world, wanted="semicolons.csv"))
    assert "';' is not the separator of this format" in err


def test_a_document_that_is_not_json_is_said_to_be_none(world: Path, capsys: Capture) -> None:
    (world / "broken.json").write_text("[{")
    for arguments in (given(world, "broken.json"), given(world, wanted="broken.json")):
        assert "is not JSON that can be read" in refused(capsys, *arguments)


def test_an_open_schema_with_an_element_that_is_now_a_value_now_an_object(
    world: Path, capsys: Capture
) -> None:
    (world / "some.csv").write_text(
        "id,condition\n1,some i in a (i.b = x)\n2,some i in a (i.b.c = 1)\n"
    )
    rows = [{"a": [{"b": "x"}, {"b": {"c": 1}}]}, {"a": [{"b": {"c": 2}}]}]
    (world / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (world / "lists.csv").write_text('n,a\n1,"[{""b"": ""x""}]"\n')
    files = ["match", "--subscriptions", f"{world}/some.csv", "--events"]
    assert run(*files, f"{world}/lists.jsonl") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [tuple(each.values()) for each in found] == [(0, 1), (0, 2)]
    assert run(*files, f"{world}/lists.csv") == 0
    assert json.loads(capsys.readouterr().out) == {"event": 0, "subscription": 1}


def test_columns_of_bad_events_need_not_be_text(world: Path, capsys: Capture) -> None:
    rows = [r'{"price": 4, "n": "\ud800"}', r'{"price": "\ud800"}', '{"price": 3, "n": "x"}']
    (world / "odd.jsonl").write_text("\n".join(rows))
    (world / "cheap.csv").write_text("id,condition\n1,price < 5\n")
    files = ["--subscriptions", f"{world}/cheap.csv", "--events", f"{world}/odd.jsonl"]
    assert run("match", *files, "--columns", "n,price", "--bad", "skip") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"event": 2, "subscription": 1, "n": "x", "price": "3"}
