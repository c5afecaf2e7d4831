"""`tamis redundancy`: files in, a report out."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.calls import Capture, refused, run

SCHEMA = "attributes: {price: decimal, kind: text}\n"
ROWS = """id,condition
a,price < 5
b,not price >= 5
c,price < 4 and kind = oak
d,price < 4 and price > 6
e,kind missing or kind exists
f,kind <
g,kind = ash
"""


def files(folder: Path, rows: str = ROWS) -> tuple[str, ...]:
    (folder / "s.yaml").write_text(SCHEMA)
    (folder / "w.csv").write_text(rows)
    return ("--schema", str(folder / "s.yaml"), "--subscriptions", str(folder / "w.csv"))


def test_a_file_is_reported(tmp_path: Path, capsys: Capture) -> None:
    assert run("redundancy", *files(tmp_path)) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "6 subscriptions, 4 redundant",
        "duplicates: 1, of 1 subscription",
        "  a = b",
        "covered by another: 1",
        "  c by a",
        "never true: 1",
        "  d",
        "always true: 1",
        "  e",
    ]
    assert "w.csv, line 7" in err
    assert "clauses looked at" in err


def test_json_has_everything(tmp_path: Path, capsys: Capture) -> None:
    assert run("redundancy", *files(tmp_path), "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["duplicates"] == [["a", "b"]]
    assert report["covered"] == [{"id": "c", "by": "a"}]
    assert (report["never_true"], report["always_true"]) == (["d"], ["e"])
    assert report["undecided"] == {}


def test_nothing_redundant_and_the_open_schema(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "w.txt").write_text("price < 5\nkind = oak\n")
    assert run("redundancy", "--subscriptions", str(tmp_path / "w.txt")) == 0
    assert capsys.readouterr().out.startswith("2 subscriptions, 0 redundant\n")


def test_a_language_and_predicates(tmp_path: Path, capsys: Capture) -> None:
    rows = [
        {"id": "a", "condition": "price = 5"},
        {"id": "b", "condition": '{"price": [5]}', "language": "eventbridge"},
    ]
    path = tmp_path / "w.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("redundancy", "--subscriptions", str(path), "--json") == 1
    assert json.loads(capsys.readouterr().out)["duplicates"] == [["a", "b"]]


def test_mistakes_are_refused(tmp_path: Path, capsys: Capture) -> None:
    assert "line 7" in refused(capsys, "redundancy", *files(tmp_path), "--strict")
    assert "nowhere" in refused(capsys, "redundancy", "--subscriptions", "nowhere.csv")
