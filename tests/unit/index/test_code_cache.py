"""Compiled code on disk: found again, never mistaken, as good as absent when it is damaged."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from time import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit

from tamis.index.code_cache import CodeCache, _swept, fingerprint, private_folders, read, write

SOURCE = """\
import other

STEP = 1

def total(values):
    sum = 0
    for value in values:
        sum += other.counted(value) * STEP
    return sum
"""
OTHER = """\
from numba import njit

FACTOR = 1

@njit
def counted(value):
    return value * FACTOR
"""
LONGS = np.arange(5)
FLOATS = np.arange(5) / 2


class Place:
    """A file with a function, one with a kernel that it calls, and a folder for its code."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.own, self.other = folder / "own.py", folder / "other.py"
        self.kept = folder / "kept"
        self.folders = [self.kept]
        self.own.write_text(SOURCE, encoding="utf-8")
        self.other.write_text(OTHER, encoding="utf-8")

    def function(self) -> Any:
        """The function as a new process would have it."""
        self._monkeypatch.setitem(sys.modules, "other", _module(self.other))
        own = _module(self.own)
        compiled = njit(own.total)
        compiled._cache = CodeCache(own.total, self.folders)
        return compiled

    def files(self) -> list[Path]:
        """All code that is kept."""
        return sorted(path for path in self.kept.rglob("*") if path.is_file())


def _module(path: Path) -> Any:
    module = ModuleType(path.stem)
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), vars(module))
    return module


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def _loaded(function: Any) -> bool:
    """Whether its code was found, after a call."""
    assert function(LONGS) == 10
    return bool(function.stats.cache_hits) and not function.stats.cache_misses


def test_code_is_found_again(place: Place) -> None:
    for found in (False, True):
        assert _loaded(place.function()) is found
        assert len(place.files()) == 1


def test_each_type_has_its_file(place: Place) -> None:
    first = place.function()
    assert first(LONGS) == 10
    (longs,) = place.files()
    assert first(FLOATS) == 5.0
    (floats,) = set(place.files()) - {longs}
    second = place.function()
    assert second(FLOATS) == 5.0
    assert _loaded(second)
    floats.write_bytes(longs.read_bytes())  # code under a wrong name is not taken
    third = place.function()
    assert third(FLOATS) == 5.0
    assert not third.stats.cache_hits


@pytest.mark.parametrize("left", [0, 1, 15, 16, 17, 100, -1, None])
def test_a_file_cut_short_or_damaged_is_written_again(place: Place, left: int | None) -> None:
    place.function()(LONGS)
    (path,) = place.files()
    data = bytearray(path.read_bytes())
    if left is None:
        data[len(data) // 2] ^= 1
    path.write_bytes(data[:left])
    assert not _loaded(place.function())
    assert place.files() == [path]
    assert read(path) is not None
    assert _loaded(place.function())


@pytest.mark.parametrize(
    ("file", "old", "new", "then"),
    [
        ("own", "STEP = 1", "STEP = 2", 20),
        ("own", "sum = 0", "sum = 1", 11),
        ("other", "FACTOR = 1", "FACTOR = 3", 30),
        ("other", "value * FACTOR", "value + FACTOR", 15),
    ],
)
def test_a_change_is_noticed_wherever_it_is(
    place: Place, file: str, old: str, new: str, then: int
) -> None:
    place.function()(LONGS)
    path: Path = getattr(place, file)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert place.function()(LONGS) == then
    assert len(place.files()) == 2


def test_comments_and_docstrings_make_no_difference(place: Place) -> None:
    for path in (place.own, place.other):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("):\n", '):\n    """Before."""\n', 1), encoding="utf-8")
    place.function()(LONGS)
    for path in (place.own, place.other):
        text = "# why\n\n" + path.read_text(encoding="utf-8")
        path.write_text(text.replace("Before", "After"), encoding="utf-8")
    assert _loaded(place.function())


def test_code_that_names_a_class_which_has_moved_is_written_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called_with_a_pair(module: str) -> Any:
        made = ModuleType(module)
        exec("from typing import NamedTuple\nclass Pair(NamedTuple):\n    first: int", vars(made))
        made.Pair.__module__ = module
        monkeypatch.setitem(sys.modules, module, made)
        function = place.function()
        assert function(made.Pair(3)) == 3
        return function.stats.cache_hits

    assert not called_with_a_pair("before")
    monkeypatch.delitem(sys.modules, "before")
    assert not called_with_a_pair("after")
    assert called_with_a_pair("after")


def test_a_kernel_that_calls_itself_has_a_fingerprint() -> None:
    @njit
    def steps(left: int) -> int:
        return 0 if left == 0 else 1 + steps(left - 1)

    assert fingerprint(steps) == fingerprint(steps)


def test_settings_that_change_code_are_part_of_its_name(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.function()(LONGS)
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", 1)
    assert not _loaded(place.function())


def test_code_is_written_to_the_first_folder_that_takes_it_and_read_from_all(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    place.folders = [tmp_path / "file" / "kernels", place.kept]
    place.function()(LONGS)
    assert len(place.files()) == 1
    assert _loaded(place.function())
    place.folders = [tmp_path / "empty", place.kept]
    assert _loaded(place.function())
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
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    assert not write(tmp_path / "some", b"code")
    assert list(tmp_path.iterdir()) == []


def test_code_is_deleted_when_unused_for_30_days(place: Place) -> None:
    used, today = place.function(), time()
    used(LONGS)
    (code,) = place.files()
    digest = code.name.rpartition("-")[2]
    stale = [place.kept / f"own.old-{digest}", place.kept / f".own.old-{digest}.01ef.tmp"]
    fresh = place.kept / f"own.new-{digest}"
    foreign = [place.kept / "own.old-1.py311.nbi", place.kept / digest]
    for path in (*stale, *foreign):
        path.touch()
        os.utime(path, times=(today, today - 31 * 86_400))
    fresh.touch()
    os.utime(fresh, times=(today, today - 29 * 86_400))
    os.utime(code, times=(today, today - 29 * 86_400))
    assert _loaded(place.function())  # which renews its date
    assert code.stat().st_mtime > today - 60
    _swept.clear()  # as in a new process
    used(FLOATS)
    left = set(place.files())
    assert left >= {code, fresh, *foreign}
    assert not left & set(stale)


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


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code is code: whoever can write to the folder chooses what runs."""
    monkeypatch.setattr("tamis.index.code_cache.gettempdir", lambda: str(tmp_path))
    safe, open_to_all, missing = tmp_path / "safe", tmp_path / "open", tmp_path / "missing"
    safe.mkdir(mode=0o755)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write to .*open"):
        assert private_folders([open_to_all, safe, missing]) == [safe, missing]
    (fallback,) = private_folders([open_to_all])
    assert write(fallback / "code", b"x")
    assert fallback.stat().st_mode & 0o777 == 0o700
    assert private_folders([open_to_all]) == [fallback]
    fallback.chmod(0o777)
    assert private_folders([open_to_all]) != [fallback]


def test_what_is_complete_is_noted(place: Place) -> None:
    first = place.function()
    codegen = first.targetctx.codegen()
    assert not first._cache.is_complete(codegen)
    first._cache.mark_complete(codegen)
    assert place.function()._cache.is_complete(codegen), "another process finds it"
    assert not _loaded(place.function()), "it is no code"
    place.other.write_text(OTHER.replace("FACTOR = 1", "FACTOR = 2"), encoding="utf-8")
    assert not place.function()._cache.is_complete(codegen), "it calls another function"
