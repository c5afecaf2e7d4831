"""Compiled code on disk: found again, never mistaken, as good as absent when it is damaged."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from tamis.index.codestore import CodeStore, Sources, read, write

SOURCE = """\
STEP = 1

def total(values):
    sum = 0
    for value in values:
        sum += value * STEP
    return sum
"""
LONGS = np.arange(5)
FLOATS = np.arange(5) / 2


class Place:
    """A file with a function, one that it is taken to depend on, and a folder for its code."""

    def __init__(self, folder: Path) -> None:
        self.own, self.shared = folder / "own.py", folder / "shared.py"
        self.kept = folder / "kept"
        self.folders = [self.kept]
        self.own.write_text(SOURCE, encoding="utf-8")
        self.shared.write_text("", encoding="utf-8")

    def function(self) -> Any:
        """The function as a new process would have it."""
        spec = importlib.util.spec_from_file_location("own", self.own)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        exec(compile(self.own.read_text(encoding="utf-8"), self.own, "exec"), vars(module))
        compiled = njit(module.total)
        compiled._cache = CodeStore(module.total, Sources(lambda: [self.shared]), self.folders)
        return compiled

    def files(self) -> list[Path]:
        """All code that is kept."""
        return sorted(path for path in self.kept.rglob("*") if path.is_file())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _loaded(function: Any) -> bool:
    return bool(function.stats.cache_hits) and not function.stats.cache_misses


def test_code_is_found_again(place: Place) -> None:
    first = place.function()
    assert first(LONGS) == 10
    assert not _loaded(first)
    assert len(place.files()) == 1
    second = place.function()
    assert second(LONGS) == 10
    assert _loaded(second)
    assert len(place.files()) == 1


def test_each_type_has_its_file(place: Place) -> None:
    first = place.function()
    assert (first(LONGS), first(FLOATS)) == (10, 5.0)
    assert len(place.files()) == 2
    second = place.function()
    assert (second(FLOATS), second(LONGS)) == (5.0, 10)
    assert _loaded(second)


def test_code_under_a_wrong_name_is_not_taken(place: Place) -> None:
    first = place.function()
    first(LONGS)
    (longs,) = place.files()
    first(FLOATS)
    (floats,) = set(place.files()) - {longs}
    floats.write_bytes(longs.read_bytes())
    second = place.function()
    assert second(FLOATS) == 5.0
    assert not _loaded(second)


@pytest.mark.parametrize("left", [0, 1, 15, 16, 17, 100, -1])
def test_a_file_cut_short_is_written_again(place: Place, left: int) -> None:
    place.function()(LONGS)
    (path,) = place.files()
    path.write_bytes(path.read_bytes()[:left])
    again = place.function()
    assert again(LONGS) == 10
    assert not _loaded(again)
    assert place.files() == [path]
    assert read(path) is not None
    assert _loaded(_called(place.function()))


def test_a_damaged_file_is_written_again(place: Place) -> None:
    place.function()(LONGS)
    (path,) = place.files()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    again = place.function()
    assert again(LONGS) == 10
    assert not _loaded(again)
    assert _loaded(_called(place.function()))


def test_a_change_of_the_own_file_or_of_a_shared_one_is_noticed(place: Place) -> None:
    place.function()(LONGS)
    place.own.write_text(SOURCE.replace("STEP = 1", "STEP = 2"), encoding="utf-8")
    assert place.function()(LONGS) == 20, "a constant is part of the code"
    place.shared.write_text("CHANGED = True", encoding="utf-8")
    again = place.function()
    assert again(LONGS) == 20
    assert not _loaded(again)
    assert len(place.files()) == 3


@pytest.mark.parametrize("which", ["own", "shared"])
def test_code_of_files_that_changed_meanwhile_is_not_kept(place: Place, which: str) -> None:
    path: Path = getattr(place, which)
    function = place.function()
    path.write_text(SOURCE.replace("STEP = 1", "STEP = 2"), encoding="utf-8")
    assert function(LONGS) == 10, "what was read is what runs"
    path.unlink()
    assert function(FLOATS) == 5.0
    assert place.files() == []


def test_settings_that_change_code_are_part_of_its_name(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.function()(LONGS)
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", 1)
    again = place.function()
    assert again(LONGS) == 10
    assert not _loaded(again)


def test_code_is_written_to_the_first_folder_that_takes_it_and_read_from_all(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    place.folders = [tmp_path / "file" / "kernels", place.kept]
    place.function()(LONGS)
    assert len(place.files()) == 1
    assert _loaded(_called(place.function()))
    place.folders = [tmp_path / "empty", place.kept]
    assert _loaded(_called(place.function()))
    assert not (tmp_path / "empty").exists()


def test_where_nothing_can_be_written_each_process_compiles_and_says_so_once(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    place.folders = [tmp_path / "file" / "kernels"]
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert place.function()(LONGS) == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert place.function()(LONGS) == 10


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        written(path, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert not write(tmp_path / "some", b"code")
    assert list(tmp_path.iterdir()) == []


def test_files_hold_what_was_written_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    assert read(path) is None
    for data in (b"", b"code", b"other code"):
        assert write(path, data)
        assert read(path) == data
    assert [each.name for each in path.parent.iterdir()] == ["b"]
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert read(path) is None
    path.write_bytes(whole + b"x")
    assert read(path) is None
    path.unlink()
    path.mkdir()
    assert read(path) is None
    assert not write(path, b"code")
    assert [each.name for each in path.parent.iterdir()] == ["b"]


def _called(function: Any) -> Any:
    assert function(LONGS) == 10
    return function
