"""What all commands have in common: help, JSON, and how they answer a mistake."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tamis.cli import main as cli
from tests.running import run_script
from tests.unit.cli.calls import Capture, refused, run
from tests.unit.cli.tree import commands, options

# Commands without --json, and why it would make no sense.
WITHOUT_JSON = {
    "demo": "a picture that changes, for people; `spark run` does the same work with --json",
    "demo city": "a picture that changes, for people",
    "completion": "a script for a shell",
    "log tail": "prints lines of JSON, and nothing else",
}
# In the order in which a person meets them.
TITLES = [
    "Try",
    "Match files",
    "Run a service",
    "Call a service",
    "Spark and the log",
    "Look inside",
    "Measure",
    "The shell",
]


def test_every_command_prints_json() -> None:
    without = {name for name, each in commands().items() if "--json" not in options(each)}
    assert without == set(WITHOUT_JSON)


def test_json_is_asked_for_in_one_way() -> None:
    for name, command in commands().items():
        for each in command.params:
            if "--json" in each.opts:
                assert each.name == "as_json", name
                assert isinstance(each, click.Option), name
                assert each.is_flag, name


def test_help_has_titles_in_order(capsys: Capture) -> None:
    assert run("--help") == 0
    out = capsys.readouterr().out
    assert re.findall(r"^([A-Z][\w ]*):$", out, re.MULTILINE) == ["Options", *TITLES]
    listed = re.findall(r"^  ([a-z][a-z-]*)  +[A-Z]", out, re.MULTILINE)
    assert listed == [name for table in cli.COMMANDS.values() for name in table]
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.startswith("    ")], "every command has one line"
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("tamis, version ")


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help(name: str, capsys: Capture) -> None:
    assert run(*name.split(), "--help") == 0
    assert f"tamis {name}" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["help", "completion"])
def test_help_and_completion_import_no_command(shell: str) -> None:
    asked = {"COMP_WORDS": "tamis s", "COMP_CWORD": "1", "_TAMIS_COMPLETE": "bash_complete"}
    run_script(
        f"""
        import os, sys
        os.environ |= {asked if shell == "completion" else {}}
        from tamis.cli.main import main
        try:
            main(['--help'])
        except SystemExit as left:
            assert left.code == 0, left.code
        heavy = {{'numba', 'numpy', 'pyarrow', 'pyspark', 'rich'}} & set(sys.modules)
        assert not heavy, heavy
        """
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serv"], "tamis: there is no command 'serv'; did you mean 'serve'?"),
        (["log", "stat"], "tamis log: there is no command 'stat'; did you mean 'stats'?"),
        (["keys", "lst"], "tamis keys: there is no command 'lst'; did you mean 'list'?"),
        (["zzzz"], "tamis: there is no command 'zzzz'\ntamis --help explains it"),
        (
            ["match", "--subscription", "x"],
            "tamis match: there is no option --subscription; did you mean '--subscriptions'?",
        ),
        (["demo", "--Rate", "5"], "tamis demo: there is no option --Rate; did you mean '--rate'?"),
        (["check"], "tamis check: missing argument 'CONDITION'\ntamis check --help explains it"),
        (
            ["log", "create"],
            "tamis log create: missing argument 'LOG'\ntamis log create --help explains it",
        ),
    ],
)
def test_a_mistake_gets_a_sentence_and_a_hint(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    assert refused(capsys, *arguments) == said + "\n"


# Each prints one document, and nothing else, on standard output.
@pytest.mark.parametrize(
    "arguments",
    [
        ["matchers"],
        ["matchers", "tamis", "dexin"],
        ["schedulers"],
        ["operators"],
        ["lab", "list"],
        ["translate", "--from", "eventbridge", '{"price": [5]}'],
        ["check", "SCHEMA", "price < 5"],
        ["explain", "SCHEMA", "price < 5", '{"price": 7}'],
        ["schema", "SCHEMA"],
        ["plan", "--schema", "SCHEMA", "--subscriptions", "SUBSCRIPTIONS"],
        ["redundancy", "--subscriptions", "SUBSCRIPTIONS"],
        ["match", "--subscriptions", "SUBSCRIPTIONS", "--events", "EVENTS", "--explain", "1"],
        ["log", "create", "NEW"],
        ["log", "schema", "LOG"],
        ["log", "stats", "LOG"],
        ["log", "verify", "LOG"],
        ["log", "publish", "LOG", "EVENTS"],
        ["log", "subscribe", "LOG", "price < 5", "--id", "ann"],
        ["log", "export", "LOG", "--out", "OUT.jsonl"],
        ["serve", "NEW", "--show-config"],
        ["soak", "--instances", "10"],
    ],
    ids=lambda given: " ".join(given[:2]),
)
def test_json_is_one_document(arguments: list[str], tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "SCHEMA").write_text("attributes: {price: decimal}", encoding="utf-8")
    (tmp_path / "SUBSCRIPTIONS.csv").write_text("id,condition\n1,price < 5\n", encoding="utf-8")
    (tmp_path / "EVENTS.jsonl").write_text('{"price": 4}\n', encoding="utf-8")
    if "LOG" in arguments:
        assert run("log", "create", str(tmp_path / "LOG")) == 0
        capsys.readouterr()
    suffixes = {"SUBSCRIPTIONS": ".csv", "EVENTS": ".jsonl"}
    given = [
        str(tmp_path / (each + suffixes.get(each, ""))) if each.isupper() or "OUT" in each else each
        for each in arguments
    ]
    assert run(*given, "--json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out)


def test_json_of_a_match(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "wanted.csv").write_text("id,condition\n7,price < 5\n", encoding="utf-8")
    (tmp_path / "lots.jsonl").write_text('{"price": 4}\n{"price": 6}\n{"price": "x"}\n')
    files = ["--subscriptions", f"{tmp_path}/wanted.csv", "--events", f"{tmp_path}/lots.jsonl"]
    assert run("match", *files, "--out", f"{tmp_path}/found.csv", "--json") == 0
    told = json.loads(capsys.readouterr().err)
    del told["seconds"], told["operators"]
    assert told == {
        "events": 3, "matched": 1, "matches": 1, "bad": 0, "subscriptions": 1, "refused": 0,
        "unseen": [],
    }  # fmt: skip
    assert run("match", *files, "--explain", "7", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["events"], found["matched"]) == (7, 3, 1)
    assert [each["matches"] for each in found["examples"]] == [True, False, False]
    assert found["examples"][1]["explanation"].startswith("does not match")


def test_progress_is_shown_in_a_terminal_and_leaves_json_alone(tmp_path: Path) -> None:
    """Standard output is a pipe, as with `| jq`; standard error is the terminal."""
    log = str(tmp_path / "log")
    (tmp_path / "lots.jsonl").write_text('{"price": 4}\n', encoding="utf-8")
    assert run("log", "create", log) == 0
    for arguments, what in (
        (["log", "publish", log, f"{tmp_path}/lots.jsonl"], "Publishing"),
        (["log", "stats", log], "Reading the log"),
        (["log", "subscribe", log, "price < 5", "--id", "ann"], "Reading the log"),
    ):
        ours, theirs = pty.openpty()
        ran = subprocess.run(
            [sys.executable, "-m", "tamis.cli.main", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=theirs,
            check=True,
            env=os.environ | {"TERM": "xterm"},
        )
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        assert what in shown
        assert json.loads(ran.stdout)
