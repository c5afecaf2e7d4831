"""`tamis operators` and `tamis schedulers` list everything, and say why some cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.cli.registries import call_form
from tamis.operators import Operators, registry
from tamis.operators.registry import installed
from tamis.schedule.registry import entry, schedulers
from tests.unit.cli.calls import Capture, run
from tests.unit.operators.packages import importable, install

MODULE = """
from tamis.operators import operator

@operator(name="listed.far", reads=("where", "when"), arguments={"place": "text"},
          gives={"metres": "number"}, cost=2.5, timeout=3.0, run="process")
def far(where, when, place):
    '''How far it is.

    Measured by the map.
    '''
    return 1.0

@operator(name="listed.always", run="here")
def always():
    return True

@operator(name="listed.many", reads="where", batch=True)
def many(where):
    return [True] * len(where)

three = 3
"""
POINTS = """[tamis.operators]
listed.far = a_listed.maps:far [maps]
listed.always = a_listed.maps:always
listed.many = a_listed.maps:many
listed.number = a_listed.maps:three
listed.misnamed = a_listed.maps:far
listed.seen = a_listed.seeing:seen [seeing]
listed.broken = a_listed.broken:seen
"""


@pytest.fixture
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as if it were installed, of which some modules cannot be imported."""
    install(tmp_path, "a-listed", POINTS)
    known = {name: dict(each) for name, each in registry._REGISTERED.items()}
    monkeypatch.setattr(registry, "_REGISTERED", known)
    modules = {"maps": MODULE, "seeing": "import no_such_library\n", "broken": "1 / 0\n"}
    with importable(tmp_path, "a_listed", modules, monkeypatch):
        yield


def _listed(capsys: Capture) -> dict[str, list[str]]:
    """The lines under each operator, by the head line."""
    assert run("operators") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, list[str]] = {}
    head = ""
    for line in out.splitlines():
        if line.startswith("    "):
            found[head].append(line.strip())
        else:
            head = line
            assert head not in found
            found[head] = []
    return found


@pytest.mark.usefixtures("_packages")
def test_an_operator_is_listed_with_its_facts(capsys: Capture) -> None:
    listed = _listed(capsys)
    assert listed["listed.far(place, ?metres)  a-listed[maps]"] == [
        "How far it is.",
        "reads where, when; runs in a process, at most 3 s; about 2.5 ms",
    ]
    assert listed["listed.always()  a-listed"] == [
        "reads nothing of the event; runs in place; about 1 ms"
    ]
    assert listed["listed.many()  a-listed"] == [
        "reads where; runs in a thread, in batches, at most 1 s; about 1 ms"
    ]


@pytest.mark.usefixtures("_packages")
@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("listed.seen  a-listed[seeing]", r"pip install 'a-listed\[seeing\]'"),
        ("listed.broken  a-listed", "ZeroDivisionError"),
        ("listed.number  a-listed", "is not an operator"),
        ("listed.misnamed  a-listed", "must have one name"),
    ],
)
def test_one_that_cannot_be_loaded_says_why(head: str, said: str, capsys: Capture) -> None:
    listed = _listed(capsys)
    (why,) = listed[head]
    assert why.startswith("missing: ")
    assert re.search(said, why)
    assert "listed.far(place, ?metres)  a-listed[maps]" in listed, "the others are listed still"
    assert f"4 of {len(installed())} cannot be called here." in listed


@pytest.mark.usefixtures("_packages")
def test_packages_that_disagree_are_both_named(tmp_path: Path, capsys: Capture) -> None:
    install(tmp_path, "b-listed", "[tamis.operators]\nlisted.far = b_listed:far\n")
    installed.cache_clear()
    (why,) = _listed(capsys)["listed.far  a-listed[maps], b-listed"]
    assert "several packages" in why


def test_without_any_operator_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("tamis.cli.registries.installed", dict)
    assert run("operators") == 0
    assert capsys.readouterr().out == "No installed package offers operators.\n"


def test_all_that_is_installed_is_listed(capsys: Capture) -> None:
    known = Operators()
    heads = {head.split("  ")[0] for head in _listed(capsys)}
    assert {call_form(known[name]) for name in installed()} == heads


def test_schedulers_shows_the_registry(capsys: Capture) -> None:
    assert run("schedulers") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(schedulers())
    for name, head, idea in zip(schedulers(), lines[::2], lines[1::2], strict=True):
        assert head.split() == [name, *entry(name).paper.split()]
        assert idea == f"    {entry(name).idea}"
