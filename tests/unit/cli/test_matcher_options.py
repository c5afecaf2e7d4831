"""Options of matchers on the command line: listed, read, recorded, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.calls import Capture, refused, run


def test_matchers_lists_the_options_of_those_named(capsys: Capture) -> None:
    assert run("matchers", "rein", "naive") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["rein", "exact"]
    buckets = "    buckets=1000  buckets of each side of an attribute; a whole number from 1 to "
    assert lines[2] == buckets + "1,000,000"
    assert lines[-1] == "    no options"
    assert "unknown matcher 'reins'" in refused(capsys, "matchers", "reins")


def test_bench_makes_the_matcher_with_its_options(tmp_path: Path, capsys: Capture) -> None:
    chosen = ("--matcher", "dexin", "--option", "slots=7", "--option", "plan=inclusive")
    assert run("bench", "match", "--quick", *chosen, "--out", str(tmp_path)) == 0
    (path,) = tmp_path.glob("*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["parameters"]["options"] == {"slots": 7, "plan": "inclusive"}


def test_soak_compares_under_the_options_given(capsys: Capture) -> None:
    assert run("soak", "rein", "--option", "buckets=3", "--operations", "60") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("rein buckets=3: ")


def test_plan_lays_out_under_the_options_given(capsys: Capture) -> None:
    size = ("--workload", "gryphon", "--subscriptions", "200", "--events", "20")
    assert run("plan", *size, "--option", "threads=2") == 0
    assert "200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "match", "--option", "slots=7"), "name it with --matcher"),
        (("bench", "--matcher", "dexin", "--option", "slots"), "'slots' is not of the form NAME"),
        (("bench", "--matcher", "dexin", "--option", "slots=0"), "slots must be a whole number"),
        (("bench", "--matcher", "dexin", "--option", "slot=7"), "did you mean 'slots'"),
        (("soak", "--option", "buckets=3"), "name only that one"),
        (("soak", "rein", "scan", "--option", "buckets=3"), "name only that one"),
        (("plan", "--workload", "gryphon", "--option", "threads=many"), "threads must be a whole"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], said: str, capsys: Capture) -> None:
    assert said in refused(capsys, *arguments)
