"""Saved indexes appear complete or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tamis.errors import SavedIndexError
from tamis.files import array_folder
from tamis.files.array_folder import read, write
from tamis.files.checksum import SectionWriter
from tests.unit.files.saved_index import ARRAYS, FACTS


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    target = tmp_path / "index"
    for array in (np.array([None]), np.array(["a"]), np.zeros(2, "i4,f8"), np.zeros(1, complex)):
        with pytest.raises(SavedIndexError, match="the array 'odd' holds"):
            write(target, {"odd": array}, {})
    for facts in ({"odd": {1, 2}}, {"odd": float("nan")}, {"odd": b""}):
        with pytest.raises(SavedIndexError, match="cannot be written as JSON"):
            write(target, {}, facts)
    with pytest.raises(SavedIndexError, match=r"there is no folder .*nowhere"):
        write(tmp_path / "nowhere" / "index", {}, {})
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("dear to me")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for taken in (folder, tmp_path / "file", tmp_path / "empty"):
        with pytest.raises(SavedIndexError, match="exists already"):
            write(taken, {}, {})
    for foreign in (tmp_path / "file", tmp_path / "empty"):
        with pytest.raises(SavedIndexError, match=r"is a file|is not a saved"):
            write(foreign, {}, {}, replace=True)
    assert (tmp_path / "file").read_text() == "dear to me"
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(SavedIndexError, match=r"also holds 'notes\.txt'"):
        write(folder, {}, {}, replace=True)
    assert len(read(folder).arrays) == len(ARRAYS)


def test_replacing_leaves_the_old_one_to_those_who_have_it(folder: Path, tmp_path: Path) -> None:
    old = read(folder)
    write(folder, {"numbers": np.zeros(3)}, {"new": True}, replace=True)
    assert old.arrays["numbers"].tolist() == list(range(1000))
    assert read(folder).facts == {"new": True}
    assert read(folder).arrays["numbers"].tolist() == [0, 0, 0]
    assert list(tmp_path.iterdir()) == [folder], "nothing is left lying about"
    write(tmp_path / "fresh", {}, {}, replace=True)  # a folder that does not exist yet
    (tmp_path / "link").symlink_to(folder)
    write(tmp_path / "link", {}, {"by": "link"}, replace=True)
    assert (tmp_path / "link").is_symlink()
    assert read(folder).facts == {"by": "link"}


@pytest.mark.parametrize("exchange", [True, False])
def test_a_reader_sees_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:  # as on a system that cannot
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: None)
    folder = tmp_path / "index"

    def put(number: int) -> None:
        arrays = {f"a{at}": np.full(100 + number, number) for at in range(5)}
        write(folder, arrays, {"number": number}, replace=True)

    put(0)
    done = Event()
    seen: list[int] = []
    wrong: list[str] = []

    def look() -> None:
        while not done.is_set():
            try:
                saved = read(folder)
            except SavedIndexError as why:
                if exchange or "there is no such folder" not in str(why):
                    wrong.append(str(why))
                continue
            number = saved.facts["number"]
            seen.append(number)
            right = [number] * (100 + number)
            wrong.extend(f"{number}: {a}" for a in saved.arrays.values() if a.tolist() != right)

    looking = Thread(target=look)
    looking.start()
    for number in range(1, 40):
        put(number)
    done.set()
    looking.join()
    assert wrong == []
    assert seen == sorted(seen)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_full_disk_leaves_what_was_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = [20_000]

    def written(self: SectionWriter, data: Any) -> int:
        room[0] -= len(memoryview(data).cast("B"))
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        return wrote(self, data)

    wrote = SectionWriter.write
    monkeypatch.setattr(SectionWriter, "write", written)
    for target, replace in ((tmp_path / "new", False), (folder, True)):
        room[0] = 20_000
        with pytest.raises(SavedIndexError, match="No space left on device; nothing was changed"):
            write(target, {**ARRAYS, "large": np.zeros(10_000)}, {}, replace=replace)
        assert list(tmp_path.iterdir()) == [folder]
        assert read(folder).facts == FACTS


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        write(small / "index", {"few": np.zeros(10)}, {})
        with pytest.raises(SavedIndexError, match="No space left on device"):
            write(small / "other", {"many": np.zeros(100_000)}, {})
        with pytest.raises(SavedIndexError, match="No space left on device"):
            write(small / "index", {"many": np.zeros(100_000)}, {}, replace=True)
        assert [path.name for path in small.iterdir()] == ["index"]
        assert read(small / "index").arrays["few"].tolist() == [0] * 10
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_whatever_interrupts_the_writing_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(file: SectionWriter) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "index", ARRAYS, FACTS, {"blob": interrupted})
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_is_killed_leaves_nothing_under_the_name(folder: Path) -> None:
    code = (
        "import sys, time\n"
        "import numpy as np\n"
        "from tamis.files.array_folder import write\n"
        "def wait(file):\n"
        "    print('half', flush=True)\n"
        "    time.sleep(60)\n"
        "for target in sys.argv[1:]:\n"
        "    write(target, {'x': np.zeros(9)}, {}, {'blob': wait}, replace=True)\n"
    )
    for target in (folder.with_name("new"), folder):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "half\n"
            writer.send_signal(signal.SIGKILL)
    assert not folder.with_name("new").exists()
    assert read(folder).facts == FACTS


def test_a_reader_finds_the_name_free_while_the_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    write(folder, {}, {"number": 1})
    write(tmp_path / "new", {}, {"number": 2})
    opened = array_folder._OpenFolder.manifest

    def manifest(place: array_folder._OpenFolder) -> dict[str, Any]:
        found = opened(place)
        if found["facts"]["number"] == 1:  # it is deleted, and its name is free for an instant
            shutil.rmtree(folder)
        return found

    def replaced(place: array_folder._OpenFolder) -> bool:
        was = known(place)
        if not folder.exists():
            (tmp_path / "new").rename(folder)
        return was

    known = array_folder._OpenFolder.replaced
    monkeypatch.setattr(array_folder._OpenFolder, "manifest", manifest)
    monkeypatch.setattr(array_folder._OpenFolder, "replaced", replaced)
    assert read(folder).facts == {"number": 2}
