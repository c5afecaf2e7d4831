"""What the documentation shows works as shown."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tamis.cli.main import COMMANDS
from tamis.cli.spark import COMMANDS as SPARK_COMMANDS
from tamis.match import registry
from tests.acceptance.pages import PAGES, ROOT, blocks

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_MODULE = re.compile(r"`(tamis(?:\.\w+)+)[`(]")
_PATH = re.compile(r"`(tamis/[\w/.]+)`")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _needs_spark(page: Path) -> bool:
    return any("tamis.spark" in block.code for block in blocks(page))


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


def test_the_index_of_the_docs_lists_every_page() -> None:
    folder = ROOT / "docs"
    linked = {target for target, _ in _LINK.findall((folder / "README.md").read_text("utf-8"))}
    pages = {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert pages <= linked


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


@pytest.mark.parametrize("command", [*COMMANDS, *(f"spark {name}" for name in SPARK_COMMANDS)])
def test_every_command_is_documented(command: str) -> None:
    pages = (ROOT / "docs").glob("*.md")
    written = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert re.search(rf"\btamis {command}\b", written), f"no page in docs has `tamis {command}`"


def test_the_table_of_matchers_is_that_of_the_registry() -> None:
    page = (ROOT / "docs" / "matchers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|(?:[^|\n]+\|){4}$", page, re.MULTILINE)
    assert sorted(rows) == sorted(registry.matchers())
