"""`scripts/check_layout.py` finds each kind of violation, and names its place."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.acceptance.pages import load_script

TABLE = "| package | holds |\n| --- | --- |\n| `tamis/model` | schemas |\n"
LAYERS = "\n```\nbroker     spark\nmodel\n```\n"
CONTRACT = """\
[[tool.importlinter.contracts]]
type = "layers"
layers = ["(broker) | spark", "model"]
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("check_layout")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project without violations."""
    _write(tmp_path, "src/tamis/__init__.py", "")
    _write(tmp_path, "src/tamis/model/__init__.py", "class Schema: ...\n")
    _write(tmp_path, "src/tamis/model/event.py", "class Event: ...\n")
    _write(tmp_path, "docs/architecture.md", TABLE + LAYERS)
    _write(tmp_path, "pyproject.toml", CONTRACT)
    return tmp_path


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_clean_project_has_no_violations(script: ModuleType, root: Path) -> None:
    assert script.violations(root) == []


@pytest.mark.parametrize("name", ["Event", "_Event"])
def test_class_names_are_unique(script: ModuleType, root: Path, name: str) -> None:
    _write(
        root, "src/tamis/model/log.py", f"def make():\n    class {name}: ...\n    return {name}\n"
    )
    (found,) = script.violations(root)
    assert "class Event occurs 2 times" in found
    assert "src/tamis/model/event.py:1, src/tamis/model/log.py:2" in found


@pytest.mark.parametrize("folder", ["src/tamis/model", "tests", "scripts"])
def test_files_are_short(script: ModuleType, root: Path, folder: str) -> None:
    _write(root, f"{folder}/large.py", "x = 1\n" * script.MOST_LINES)
    assert script.violations(root) == []
    _write(root, f"{folder}/large.py", "x = 1\n" * (script.MOST_LINES + 1))
    (found,) = script.violations(root)
    assert f"{folder}/large.py: {script.MOST_LINES + 1} lines" in found


def test_folders_are_small(script: ModuleType, root: Path) -> None:
    for number in range(script.MOST_FILES - 2):
        _write(root, f"src/tamis/model/part{number}.py", "")
    assert script.violations(root) == []
    _write(root, "src/tamis/model/another.py", "")
    (found,) = script.violations(root)
    assert f"src/tamis/model: {script.MOST_FILES + 1} Python files" in found


def test_the_table_of_packages_is_complete(script: ModuleType, root: Path) -> None:
    _write(root, "src/tamis/match/default/__init__.py", "")
    _write(root, "src/tamis/match/__init__.py", "")
    _write(root, "docs/architecture.md", f"{TABLE}| `tamis/broker` | nothing yet |\n{LAYERS}")
    lacks_match, lacks_default, has_broker = script.violations(root)
    assert lacks_match.endswith("lacks `tamis/match`")
    assert lacks_default.endswith("lacks `tamis/match/default`")
    assert "has `tamis/broker`, which does not exist" in has_broker


@pytest.mark.parametrize(
    "layers", ["", "\n```\nbroker\nmodel\n```\n", "\n```\nmodel\nbroker\n```\n"]
)
def test_the_layers_are_those_of_the_contract(script: ModuleType, root: Path, layers: str) -> None:
    _write(root, "docs/architecture.md", TABLE + layers)
    (found,) = script.violations(root)
    assert "the layers are not those" in found
