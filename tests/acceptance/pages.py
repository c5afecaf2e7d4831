"""What the tests of the project itself share: its pages, their Python blocks, its scripts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXPECTED = "#>"


class Block(NamedTuple):
    """One block: where it begins, what to run, and what it says that it prints."""

    line: int
    code: str
    expected: list[str]


def blocks(page: Path) -> list[Block]:
    """All blocks of a page in order. A line of `#>` says what the lines before it print."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        code = match[1]
        said = [line for line in code.splitlines() if line.startswith(_EXPECTED)]
        expected = [line.removeprefix(_EXPECTED).removeprefix(" ") for line in said]
        found.append(Block(text.count("\n", 0, match.start()) + 2, code, expected))
    return found


def load_script(name: str) -> ModuleType:
    """A script of the folder `scripts`, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
