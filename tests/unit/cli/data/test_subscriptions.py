"""Files of subscriptions: every format, and what becomes of malformed rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis import Engine, Schema, TamisError
from tamis.cli.data.subscriptions import SubscriptionTable, read_subscriptions, subscribe_file

SCHEMA = Schema.from_dict({"attributes": {"price": "decimal", "title": "text"}})


def _read(tmp_path: Path, name: str, text: str | bytes) -> SubscriptionTable:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_subscriptions(path)


def _rows(found: SubscriptionTable) -> list[tuple[object, str]]:
    return [(row["id"], row["condition"]) for row in found.table.to_pylist()]


def _refused(found: SubscriptionTable) -> list[tuple[int, str]]:
    return [(each.place.line, each.reason) for each in found.refused]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id,condition\n1,price < 5\n2,title = oak\n"),
        ("a.csv", "condition,id\nprice < 5,1\ntitle = oak,2\n"),
        ("a.csv", "1,price < 5\n\n2,title = oak\n"),
        ("a.csv", '\ufeffid,condition\r\n1,"price < 5"\r\n2,title = oak\r\n'),
        ("a.csv", "id,condition,comment\n1,price < 5,x\n2,title = oak,\n"),
        ("a.CSV", "1, price < 5\n2,title = oak"),
        ("a.tsv", "id\tcondition\n1\tprice < 5\n2\ttitle = oak\n"),
        ("a.tsv", "1\tprice < 5\n2\ttitle = oak\n"),
        ("a.jsonl", '{"id": 1, "condition": "price < 5"}\n\n{"id": 2, "condition": "title = oak"}'),
        ("a.json", '[{"id": 1, "condition": "price < 5"}, {"id": 2, "condition": "title = oak"}]'),
        ("a.txt", "price < 5\ntitle = oak\n"),
        ("a.csv", "condition\nprice < 5\ntitle = oak\n"),
        ("a.jsonl", '{"condition": "price < 5"}\n{"condition": "title = oak"}\n'),
    ],
)
def test_text(tmp_path: Path, name: str, text: str) -> None:
    found = _read(tmp_path, name, text)
    assert [(id, condition.strip()) for id, condition in _rows(found)] == [
        (1, "price < 5"),
        (2, "title = oak"),
    ]
    assert not found.refused


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ipc"])
def test_tables(tmp_path: Path, suffix: str) -> None:
    table = pa.table(
        {"id": ["a", "b", "a", None, ""], "condition": ["price < 5", None, "x", "x", "x"]}
    )
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        make = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as out:
            out.write_table(table)
    found = read_subscriptions(path)
    assert _rows(found) == [("a", "price < 5")]
    assert [(place.line, why) for place, why in found.refused] == [
        (2, "the condition is null"),
        (3, f"the id 'a' is taken by {path}, row 1"),
        (4, "the id is null"),
        (5, "the id is empty"),
    ]


def test_a_comma_within_a_condition_needs_quotes(tmp_path: Path) -> None:
    """It used to be cut to `dep_delay > 1`, silently."""
    found = _read(tmp_path, "a.csv", 'id,condition\n1,dep_delay > 1,000\n2,"price in (1, 2)"\n')
    assert _rows(found) == [(2, "price in (1, 2)")]
    ((line, why),) = _refused(found)
    assert line == 2
    assert why == (
        "has 3 fields, expected 2: id, condition; put a field that contains the separator in "
        "double quotes"
    )
    assert str(found.refused[0]).startswith(f"{tmp_path / 'a.csv'}, line 2: has 3 fields")


@pytest.mark.parametrize(
    ("name", "text", "line", "why"),
    [
        ("a.csv", "1,price < 1,000\n2,x", 1, "has 3 fields, expected 2"),
        ("a.csv", "id,condition\n1\n2,x", 2, "has 1 field, expected 2"),
        ("a.csv", "id,condition\n,x\n2,x", 2, "the id is empty"),
        ("a.csv", "id,condition\n,\n2,x", 2, "the id is empty"),
        ("a.csv", "id,condition\n1, \n2,x", 2, "the condition is empty"),
        ("a.csv", 'id,condition\n1,"x"y\n2,x', 2, "is not valid CSV"),
        ("a.csv", 'id,condition\n2,x\n1,"x\n3,y\n', 3, "never closed"),
        ("a.csv", "id,condition\n2,x\n2,y", 3, "the id 2 is taken by"),
        ("a.csv", b"id,condition\n1,\xff\n2,x", 2, "is not UTF-8 text"),
        ("a.csv", 'id,condition\n"1\n1",x,y\n2,x', 2, "has 3 fields"),
        ("a.txt", b"\xff\nx", 1, "is not UTF-8 text"),
        ("a.jsonl", '{"id": 1}\n{"id": 2, "condition": "x"}', 1, "has no condition, only id"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{', 2, "is not JSON"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n5', 2, "is not a JSON object"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{"condition": "x"}', 2, "has no id"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{"id": "a", "condition": "x"}', 2, "is text"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{"id": 1.5, "condition": "x"}', 2, "1.5"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{"id": true, "condition": "x"}', 2, "True"),
        ("a.jsonl", '{"id": 2, "condition": "x"}\n{"id": 3, "condition": 5}', 2, "expected text"),
        (
            "a.jsonl",
            '{"id": 2, "condition": "x"}\n{"id": 99999999999999999999, "condition": "x"}',
            2,
            "outside the 64-bit",
        ),
    ],
)
def test_a_malformed_row_is_named_and_the_others_go_on(
    tmp_path: Path, name: str, text: str | bytes, line: int, why: str
) -> None:
    found = _read(tmp_path, name, text)
    assert [condition for _, condition in _rows(found)] == ["x"]
    ((at, reason),) = _refused(found)
    assert at == line
    assert why in reason
    with pytest.raises(TamisError, match="--strict"):
        found.check(tmp_path, strict=True)
    found.check(tmp_path, strict=False)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "id,text\n1,x\n", "expected the columns id and condition, got id, text"),
        ("a.csv", "number,condition\n1,x\n", "no column 'id', only number, condition"),
        ("a.csv", "id,id,condition\n1,1,x\n", "two columns are named 'id'"),
        ("a.json", "[", "a.json"),
        ("a.parquet", "no parquet", "is not valid parquet"),
        ("a.arrow", "no arrow", "is not valid arrow"),
        ("a.yaml", "", "the format is unknown"),
        ("a", "", "the format is unknown"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(TamisError) as refusal:
        _read(tmp_path, name, text)
    assert why in str(refusal.value)


def test_ids_of_text_files_are_numbers_if_all_are(tmp_path: Path) -> None:
    assert _rows(_read(tmp_path, "a.csv", "7,x\n-3,y\n")) == [(7, "x"), (-3, "y")]
    assert _rows(_read(tmp_path, "a.csv", "7,x\n007,y\n")) == [("7", "x"), ("007", "y")]
    assert _rows(_read(tmp_path, "a.csv", "7,x\n n1 ,y\n")) == [("7", "x"), ("n1", "y")]


def test_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        row = {"id": name, "condition": f"title = {name}"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "_SUCCESS").touch()
    assert _rows(read_subscriptions(tmp_path)) == [("a", "title = a"), ("b", "title = b")]
    (tmp_path / "c.txt").write_text("price < 5\n", encoding="utf-8")
    with pytest.raises(TamisError, match=r"c\.txt: has no column id"):
        read_subscriptions(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(TamisError, match="no files with the suffix"):
        read_subscriptions(tmp_path / "none")


def test_conditions_without_ids_are_numbered_on(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("price < 5\n\nprice < 6\n", encoding="utf-8")
    assert [id for id, _ in _rows(read_subscriptions(tmp_path))] == [1, 3, 4, 6]


def test_predicates(tmp_path: Path) -> None:
    good = [{"attribute": "price", "comparator": "<", "value": 5.0}]
    rows = [{"id": 1, "predicates": good}, {"id": 2, "predicates": 5}, {"id": 3, "condition": "x"}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    engine = Engine(SCHEMA)
    found = subscribe_file(engine, path, strict=False)
    assert engine.match({"price": 3}) == [1]
    assert [line for line, _ in _refused(found)] == [2, 3]


def test_wrong_conditions_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,price < 5\n2,prise < 5\n3,price < 1,000\n", encoding="utf-8")
    engine = Engine(SCHEMA)
    found = subscribe_file(engine, path, strict=False)
    assert engine.ids() == [1]
    said = "\n".join(found.report())
    assert said.startswith("2 of 3 subscriptions were refused:")
    assert f"{path}, line 2: unknown attribute 'prise'" in said
    assert f"{path}, line 3: has 3 fields" in said
    with pytest.raises(TamisError, match="--strict takes all or nothing"):
        subscribe_file(Engine(SCHEMA), path, strict=True)
    path.write_text("2,prise < 5\n", encoding="utf-8")
    with pytest.raises(TamisError, match="no subscription left"):
        subscribe_file(Engine(SCHEMA), path, strict=False)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_conditions_are_read_in_their_languages(tmp_path: Path, suffix: str) -> None:
    pattern = '{"price": [{"numeric": ["<", 5]}]}'
    rows = [
        {"id": 1, "condition": "price < 5", "language": None},
        {"id": 2, "condition": pattern, "language": "eventbridge"},
        {"id": 3, "condition": "price < 5", "language": "tamis"},
        {"id": 4, "condition": "price < 5", "language": "unheard of"},
        {"id": 5, "condition": pattern, "language": ""},
    ]
    path = tmp_path / f"a{suffix}"
    if suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path)
    engine = Engine(SCHEMA)
    found = subscribe_file(engine, path, strict=False)
    assert [each.place.line for each in found.refused] == [4, 5]
    assert sorted(engine.match({"price": 4})) == [1, 2, 3]
    assert found.table["language"].to_pylist() == [None, "eventbridge", None]
