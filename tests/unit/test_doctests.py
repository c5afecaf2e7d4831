"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import tamis

_ROOT = Path(tamis.__file__).parent
_FILES = [path for path in sorted(_ROOT.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


def _module(path: Path) -> str:
    parts = path.relative_to(_ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_there_are_examples() -> None:
    assert _FILES


@pytest.mark.parametrize("name", [_module(path) for path in _FILES])
def test_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = doctest.testmod(import_module(name))
    assert result.failed == 0, capsys.readouterr().out
    assert result.attempted, f"{name} has >>> where doctest does not look"
