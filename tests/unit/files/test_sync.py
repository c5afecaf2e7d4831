"""Folders that a power cut leaves in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.files import sync
from tamis.files.sync import make_folder


def test_every_level_that_is_new_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a folder lies in the one above."""
    synced: list[Path] = []
    monkeypatch.setattr(sync, "sync_folder", synced.append)
    make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    synced.clear()
    make_folder(tmp_path / "a" / "b" / "c")
    assert synced == []
    make_folder(tmp_path / "a" / "b" / "d")
    assert synced == [tmp_path / "a" / "b"]


def test_relative_paths_and_files_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(Path("a/b"))
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"):
            make_folder(path)
