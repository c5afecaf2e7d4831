"""Readers are not misled by a time of a file or folder that repeats."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.spark.stream.log_task import LogTask
from tamis.store import Log, Versions
from tamis.store.log import DOCUMENT
from tests.unit.store.world import fresh, prices, publish_version, published


@contextmanager
def standing_clock(folder: Path) -> Iterator[None]:
    """All files and folders have the time after the block that they had before it."""
    before = {path: path.stat() for path in (folder, *folder.rglob("*"))}
    yield
    for path in (folder, *folder.rglob("*")):
        now = before.get(path, before[folder])
        os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def test_a_log_is_read_on(tmp_path: Path) -> None:
    log = fresh(tmp_path)
    reader = Log.open(log.folder)
    log.publish(prices(1))
    assert published(reader) == [(0, 1)]
    for number in range(2, 12):
        with standing_clock(log.folder):
            log.publish(prices(number))
            if number % 4 == 0:
                log.compact(log.end)
        assert [price for _, price in published(reader)] == list(range(1, number + 1))
        assert reader.end == number


def test_a_new_version_is_found(tmp_path: Path) -> None:
    versions, reader = Versions(tmp_path / "index"), Versions(tmp_path / "index")
    publish_version(versions, 1)
    assert [each.sequence for each in reader.all()] == [1]
    with standing_clock(tmp_path / "index"):
        publish_version(versions, 2)
    latest = reader.latest()
    assert latest is not None
    assert latest.sequence == 2


def test_another_log_in_its_place_is_another(tmp_path: Path) -> None:
    log, other = fresh(tmp_path / "one"), fresh(tmp_path / "other")
    document = log.folder / DOCUMENT
    task = LogTask(str(log.folder), 0, 0, None, 0, 0, 1, (), ())
    before, was = task._identity(), document.stat()
    document.write_bytes((other.folder / document.name).read_bytes())
    os.utime(document, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert document.stat().st_ino == was.st_ino
    assert task._identity() != before
