"""Packages with operators, as if they were installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tamis.operators.registry import installed


def install(where: Path, name: str, points: str, more: str = "") -> None:
    """Write what a package manager leaves behind."""
    info = where / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{more}\n")
    (info / "entry_points.txt").write_text(points)


@contextmanager
def importable(
    where: Path, package: str, modules: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A package with these modules can be imported, and is forgotten afterwards."""
    folder = where / package
    folder.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(where))
    installed.cache_clear()
    yield
    monkeypatch.undo()
    installed.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
