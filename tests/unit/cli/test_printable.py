"""Other people's text does not steer the terminal, whatever command shows it."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.cli.demo.command import notification
from tamis.cli.reports.stream import StreamFacts, rows
from tamis.cli.spark.run import _words
from tamis.cli.terminal.console import PrintableConsole, bar, stdout_console
from tamis.cli.terminal.printable import PrintableStream, printable_output
from tamis.cli.terminal.tables import table
from tamis.errors import TamisError
from tamis.language import to_text
from tamis.model.condition import Predicate
from tamis.spark.stream.progress import StreamStatus
from tamis.store import Log
from tests.unit.cli.calls import Capture, run

ESCAPE = "\x1b[2JHIDDEN\x1b[0m"
LINK = "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\"
HOSTILE = f"[red]bold[/red]{ESCAPE}{LINK}\x07\x08\x9b31m\x9d\u202eevil\u2066\r\x7f"
_RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_OWN = re.compile(r"\x1b\[(\d+;?)*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r")  # what rich writes
_CLI = Path(sys.modules["tamis"].__file__ or "").parent / "cli"


_CONDITION = to_text(Predicate("title", "=", HOSTILE))


def clean(text: str, *shows: str) -> None:
    """The text has the escaped data, and no control character but newlines."""
    assert not _RAW.search(text), _RAW.search(text)
    for each in shows or (r"\x1b[2J", "[red]bold[/red]"):
        assert each in text


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"attributes": {"title": "text", "n": "integer"}}))
    return str(file)


def test_explain_shows_values_escaped(schema: str, capsys: Capture) -> None:
    assert run("explain", schema, _CONDITION, json.dumps({"title": HOSTILE})) == 0
    clean(capsys.readouterr().out)


def test_explain_in_a_terminal(
    schema: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert run("explain", schema, _CONDITION, json.dumps({"title": HOSTILE})) == 0
    out = capsys.readouterr().out
    assert _OWN.search(out)  # colours
    clean(_OWN.sub("", out))


def test_check_shows_conditions_escaped(schema: str, capsys: Capture) -> None:
    assert run("check", schema, _CONDITION + " or n = 1") == 0
    clean(capsys.readouterr().out, "U0000001b]8;;", "[red]bold[/red]")
    assert run("check", schema, f"title = {ESCAPE} and") == 2
    assert not _RAW.search(capsys.readouterr().err)


def test_schema_shows_names_escaped(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "hostile.json"
    names = {"kind": "enumerated", "values": [HOSTILE, "b"]}
    file.write_text(json.dumps({"attributes": {"colour": names}}))
    code = run("schema", str(file))
    out, err = capsys.readouterr()
    assert code == 0
    clean(out + err, r"\x1b]8;;", "[red]bold[/red]")
    missing = tmp_path / f"no{ESCAPE}{chr(0x202E)}"
    for command in (("schema", str(missing)), ("check", str(missing), "a = 1"), (ESCAPE,)):
        assert run(*command) == 2
        clean(capsys.readouterr().err, "x1b")


def test_plan_shows_conditions_and_attributes_escaped(
    schema: str, tmp_path: Path, capsys: Capture
) -> None:
    subscriptions, events = tmp_path / "s.parquet", tmp_path / "e.parquet"
    texts = [f"{_CONDITION} or n = {i}" for i in range(50)]
    parquet.write_table(pa.table({"id": range(50), "condition": texts}), subscriptions)
    parquet.write_table(pa.table({"title": [HOSTILE], "n": [1]}), events)
    given = ("--schema", schema, "--subscriptions", str(subscriptions), "--events", str(events))
    run("plan", *given)
    out, err = capsys.readouterr()
    assert not _RAW.search(out + err)


def test_log_verify_shows_file_names_escaped(tmp_path: Path, capsys: Capture) -> None:
    log = Log.create(tmp_path / "log", {"attributes": {"n": "integer"}})
    log.publish(pa.table({"n": [1]}))
    for folder in {path.parent for path in (tmp_path / "log").rglob("*") if path.is_file()}:
        (folder / f"00000000{ESCAPE}[red]{chr(0x202E)}.arrow").write_bytes(b"junk")
    run("log", "verify", str(tmp_path / "log"))
    out, err = capsys.readouterr()
    assert not _RAW.search(out + err)


def test_tables_and_views_escape_cells() -> None:
    out = io.StringIO()
    console = PrintableConsole(file=out, width=400, markup=False)
    console.print(table("lw", ("a", "b"), [(HOSTILE, "two\nlines")]))
    clean(out.getvalue())
    assert r"two\nlines" in out.getvalue()
    status = StreamStatus(9, 900, 100, 800, 4000, 2, 7, 80.0, 400.0, 0.31, 0.62)
    shown = rows(status, StreamFacts(100, 0, 3, 1000, None, HOSTILE), HOSTILE)
    row = {"sequence": 1, "subscription": HOSTILE, "title": HOSTILE + "\n", "price": 1.0}
    for each in (notification(row, HOSTILE), *_words([row]), table("lll", ("", "", ""), shown)):
        out.seek(0)
        out.truncate()
        console.print(each, soft_wrap=True)
        clean(out.getvalue())


def test_bars_and_spinners_read_no_markup() -> None:
    out = io.StringIO()
    console = PrintableConsole(file=out, force_terminal=True, width=400, markup=False)
    with bar(console, f"[red]{HOSTILE}", 3) as progress:
        progress.update(1)
    clean(_OWN.sub("", out.getvalue()), r"\x1b]8;;", "[red]")


def test_messages_on_standard_error_are_escaped(capsys: Capture) -> None:
    with printable_output():
        logging.getLogger("tamis.hostile").warning("%s", HOSTILE)
        print(TamisError(HOSTILE), file=sys.stderr)
        assert isinstance(sys.stderr, PrintableStream)
        assert stdout_console().file is not sys.stdout
    assert not isinstance(sys.stderr, PrintableStream)
    clean(capsys.readouterr().err)


def test_no_command_has_a_way_around() -> None:
    for path in _CLI.rglob("*.py"):
        if path.parent.name != "terminal":
            calls = [
                each.func
                for each in ast.walk(ast.parse(path.read_text()))
                if isinstance(each, ast.Call)
            ]
            named = {each.id for each in calls if isinstance(each, ast.Name)}
            assert not named & {"Console", "print"}, path
            written = {ast.unparse(each) for each in calls if isinstance(each, ast.Attribute)}
            assert not written & {"sys.stdout.write", "sys.stderr.write"}, path
