"""What the documentation shows works as shown."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tamis.match import registry
from tamis.schedule import registry as schedule_registry
from tests.acceptance.pages import PAGES, ROOT, blocks
from tests.serving import RunningServer, running
from tests.unit.cli.calls import run
from tests.unit.cli.tree import commands, options

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_MODULE = re.compile(r"`(tamis(?:\.\w+)+)[`(]")
_PATH = re.compile(r"`(tamis/[\w/.]+)`")
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _own_schedulers() -> Iterator[None]:
    """What a page registers is gone when its module is."""
    before = dict(schedule_registry._TABLE)
    yield
    schedule_registry._TABLE.clear()
    schedule_registry._TABLE.update(before)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A service, as the readers of some pages have one."""
    with running(tmp_path / "data") as server:
        yield server


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _needs_spark(page: Path) -> bool:
    return any("tamis.spark" in block.code for block in blocks(page))


def _needs_server(page: Path) -> bool:
    return any("TAMIS_SERVER" in block.code for block in blocks(page))


def _page(page: Path) -> Any:
    """Where a page needs Spark, it goes to the process that has a session."""
    marks = [pytest.mark.xdist_group("spark")] if _needs_spark(page) else []
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [_page(p) for p in PAGES if blocks(p)], ids=_name)
def test_python_blocks_run_and_print_what_they_say(
    page: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(ROOT)  # as a reader of a clone does
    if _needs_server(page):
        monkeypatch.setenv("TAMIS_SERVER", request.getfixturevalue("server").address)
    if _needs_spark(page):
        # A process has one session: a page must find that of the tests, not start its own.
        request.getfixturevalue("spark")
    # Blocks of a page build on each other, as a reader would paste them one after the other.
    # They run in a module that can be found by its name, or pickling their classes would fail.
    module = ModuleType("pasted")
    monkeypatch.setitem(sys.modules, "pasted", module)
    for block in blocks(page):
        # Line breaks before the code let a traceback name the line of the page.
        exec(compile("\n" * (block.line - 1) + block.code, _name(page), "exec"), vars(module))
        printed = capsys.readouterr().out.splitlines()
        assert [line.rstrip() for line in printed] == [line.rstrip() for line in block.expected]


def test_the_readme_is_short_and_shows_python() -> None:
    page = ROOT / "README.md"
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 150
    assert blocks(page)
    assert len(blocks(ROOT / "docs" / "tutorial.md")) >= 5


@pytest.mark.parametrize("folder", ["docs", "docs/decisions"])
def test_the_index_of_a_folder_lists_every_page(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    linked = {target for target, _ in _LINK.findall(index)}
    pages = {path.name for path in (ROOT / folder).glob("*.md")} - {"README.md"}
    assert pages <= linked, f"{folder}/README.md does not list {pages - linked}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if ":" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{_name(page)} links to {target}"
        if anchor:
            text = there.read_text(encoding="utf-8")
            headings = {_anchor(heading) for heading in _HEADING.findall(text)}
            assert anchor in headings, f"{_name(page)} links to {target}#{anchor}"


def _anchor(heading: str) -> str:
    """How headings become anchors on the usual code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_names_of_modules_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in _MODULE.findall(text):
        assert _exists(name), f"{_name(page)} mentions {name}"
    for path in _PATH.findall(text):
        assert (ROOT / "src" / path).exists(), f"{_name(page)} mentions {path}"


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module has."""
    parts = name.split(".")
    known: Any = import_module(parts[0])
    for at in range(1, len(parts)):
        if not hasattr(known, parts[at]):
            try:
                import_module(".".join(parts[: at + 1]))
            except ImportError:
                return False
        known = getattr(known, parts[at])
    return True


def test_every_command_is_on_the_page_of_commands() -> None:
    shown = {" ".join(words) for words, _ in _shown_commands(ROOT / "docs" / "command-line.md")}
    assert shown == set(commands())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_shown_commands_have_the_options_shown(page: Path) -> None:
    known = {name: options(each) for name, each in commands().items()}
    for words, given in _shown_commands(page):
        name = " ".join(words)
        assert name in known, f"{_name(page)} shows `tamis {name}`"
        assert given <= known[name], f"{_name(page)} shows `tamis {name}` with {given}"


def _shown_commands(page: Path) -> Iterator[tuple[list[str], set[str]]]:
    """The commands in the shell blocks of a page, and their options."""
    known = commands()
    for block in _SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["tamis"]:
                size = 3 if " ".join(words[1:3]) in known else 2
                yield words[1:size], {word for word in words if word.startswith("--")}


def test_the_shell_lines_of_the_flights_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "flights.md").read_text(encoding="utf-8")
    lines = [line for block in _SHELL.findall(text) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("tamis ")]
    for line in commands:
        assert run(*shlex.split(line)[1:]) == 0
    assert len(commands) == 2
    said = capsys.readouterr()
    assert "501 events" in said.err
    assert "38 matches with 3 subscriptions" in said.err
    assert "14 of 501 events match coast" in said.out


def test_the_table_of_matchers_is_that_of_the_registry() -> None:
    page = (ROOT / "docs" / "matchers.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[`(.+)`\]\(matchers/(.+)\.md\) \| ([^|]+) \| ([^|]+) \|[^|]+\|[^|]+\|$",
        page,
        re.MULTILINE,
    )
    entries = map(registry.entry, registry.matchers())
    expected = {(each.name, each.name, each.paper, each.idea) for each in entries}
    assert set(rows) == expected, "docs/matchers.md: names, papers and ideas are the registry's"


def test_the_table_of_schedulers_is_that_of_the_registry() -> None:
    page = (ROOT / "docs" / "schedulers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    entries = map(schedule_registry.entry, schedule_registry.schedulers())
    assert rows == [(each.name, each.paper, each.idea) for each in entries]
