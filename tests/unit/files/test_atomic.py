"""Files and folders appear complete or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.errors import StoreError
from tamis.files import sync
from tamis.files.atomic import atomic_file, atomic_folder, remove_leftovers
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_appears_when_it_is_complete(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        before = path.read_bytes() if path.exists() else None
        with atomic_file(path, durable=durable) as file:
            file.write(content)
            file.flush()
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == content
    assert names_in(tmp_path) == {"file"}


def test_a_block_that_raises_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted_file() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    def interrupted_folder() -> None:
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "half").touch()
            raise KeyboardInterrupt

    for interrupted in (interrupted_file, interrupted_folder):
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == {"file"}


def test_a_file_that_cannot_take_its_place_vanishes(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"), atomic_file(tmp_path / "taken") as file:
        file.write(b"new")
    assert names_in(tmp_path) == {"taken"}


def test_the_temporary_name_can_be_chosen(tmp_path: Path) -> None:
    mine = tmp_path / ".mine"
    with atomic_file(tmp_path / "file", temporary=mine):
        assert names_in(tmp_path) == {".mine"}
    mine.write_bytes(b"of somebody else")
    with pytest.raises(FileExistsError), atomic_file(tmp_path / "file", temporary=mine):
        pytest.fail("it is refused at once")
    assert mine.read_bytes() == b"of somebody else"


def test_durable_means_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def fsync(opened: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{opened}").readlink()).removeprefix(str(tmp_path)))

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_file(tmp_path / "file", temporary=tmp_path / ".mine"):
        pass
    assert synced == ["/.mine", ""], "the content first, then the name"
    synced.clear()
    with atomic_file(tmp_path / "file", durable=False):
        pass
    assert synced == []
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "a").touch()
        (folder / "b").mkdir()
        (folder / "b" / "c").touch()
    temporary = f"/{folder.name}"
    assert synced == [f"{temporary}{each}" for each in ("/a", "", "/b/c", "/b")] + [""]


def test_an_unsynced_name_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sync, "sync_folder", refuse)
    with (
        pytest.raises(StoreError, match="file is in place, but a power cut may undo that"),
        os_errors_as(StoreError, f"{tmp_path}: cannot be written"),
        atomic_file(tmp_path / "file") as file,
    ):
        file.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_that_exists_is_replaced_only_if_asked(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with atomic_folder(target) as folder:
        (folder / "old").touch()
    with pytest.raises(FileExistsError), atomic_folder(target):
        pytest.fail("it is refused at once")
    with atomic_folder(target, replace=True) as folder:
        (folder / "new").touch()
        assert names_in(target) == {"old"}
    assert names_in(target) == {"new"}


def test_the_first_of_two_folders_stays(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with pytest.raises(FileExistsError), atomic_folder(target), atomic_folder(target) as early:
        (early / "early").touch()
    assert names_in(tmp_path) == {"folder"}
    assert names_in(target) == {"early"}


@pytest.mark.parametrize("unchanged", [True, False])
def test_a_full_disk_says_whether_anything_changed(unchanged: bool) -> None:
    with (
        pytest.raises(StoreError) as refusal,
        os_errors_as(StoreError, "log: cannot be written", unchanged=unchanged),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    hint = "; nothing was changed, make room and try again" if unchanged else ""
    assert str(refusal.value) == f"log: cannot be written: No space left on device{hint}"
    assert isinstance(refusal.value.__cause__, OSError)


_UNFINISHED = """
import sys, time
from pathlib import Path
from tamis.files.atomic import atomic_file, atomic_folder

target = Path(sys.argv[1])
with atomic_folder(target), atomic_file(target.with_name("file")) as file:
    print("writing", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_goes_and_what_a_live_one_writes_stays(tmp_path: Path) -> None:
    def names() -> list[str]:
        return sorted(each.name.split(".")[1] for each in tmp_path.glob(".*.tmp"))

    program = [sys.executable, "-c", _UNFINISHED, str(tmp_path / "folder")]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for name in ("file", "folder"):
            remove_leftovers(tmp_path / name)
        assert names() == ["file", "folder"]
        process.kill()
    with atomic_folder(tmp_path / "folder"):
        assert names() == ["file", "folder"], "its own folder, and a file that is not for it"
    remove_leftovers(tmp_path / "file")
    assert names() == []
