"""Damage of any kind is found by `verify`, and no reader ever returns wrong rows.

`TAMIS_FLIPS` and `TAMIS_FILE_DAMAGE` say how many flipped bits and damaged files are tried.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tamis.errors import TamisError
from tamis.model.schema import Schema
from tamis.store import Log, cancel, renew, subscribe
from tamis.store.verification import verify
from tests import soak_report
from tests.unit.store.world import SCHEMA, fresh, prices

FLIPS = int(os.environ.get("TAMIS_FLIPS", "300"))
DAMAGES = int(os.environ.get("TAMIS_FILE_DAMAGE", "60"))

pytestmark = pytest.mark.usefixtures("small_segments")


class Content(NamedTuple):
    """All that a reader gets from a log."""

    begin: int
    end: int
    events: dict[int, Any]
    changes: pa.Table
    schema: dict[str, Any]


class World(NamedTuple):
    """A log of several segments, older copies of its files, and a log of the same shape."""

    log: Log
    older: list[Path]
    other: Log
    content: Content


def content(folder: Path) -> Content:
    """Read everything in a log."""
    log = Log.open(folder)
    rows = {
        first + at: row
        for first, table in log.events(0)
        for at, row in enumerate(table.to_pylist())
    }
    return Content(log.begin, log.end, rows, log.changes(0, details=True), log.schema)


def _grow(log: Log, rounds: range) -> None:
    for n in rounds:
        log.publish(prices(n, n + 1))
        log.change(subscribe([f"id {n}", f"other {n}"], ["price < 6", 'name = "ä"']))
        log.append(events=prices(*range(n)), changes=renew([f"id {n}"], None))
        log.publish({"price": [n], "$source": ["here"], "$id": [str(n)]})
        log.change(cancel([f"other {n}"]))


def _build(folder: Path) -> tuple[Log, list[Path]]:
    """A log with rows of every kind, merged, trimmed and grown since, and earlier copies."""
    copies: list[Path] = []

    def copy() -> None:
        copies.append(folder / f"older-{len(copies)}")
        shutil.copytree(log.folder, copies[-1])

    log = fresh(folder)
    _grow(log, range(6))
    more = {**SCHEMA, "attributes": {**SCHEMA["attributes"], "size": "integer"}}
    more["event_types"] = {"offer": {**SCHEMA["event_types"]["offer"], "size": "optional"}}
    log.append(events=prices(1), schema=Schema.from_dict(more))
    copy()
    log.trim(20)
    _grow(log, range(6, 9))
    copy()
    log.compact(log.end, 40)
    log.trim(log.begin + 30)
    copy()
    _grow(log, range(9, 14))
    return log, copies


@pytest.fixture
def world(tmp_path: Path) -> World:
    log, older = _build(tmp_path)
    (tmp_path / "second").mkdir()
    other, _ = _build(tmp_path / "second")
    assert log.begin
    assert len(log.boundaries(log.begin)) > 20
    assert verify(log).findings == []
    return World(log, older, other, content(log.folder))


def _paths(log: Log) -> list[Path]:
    """The files with content."""
    return sorted(each for each in log.folder.rglob("*") if each.is_file() and each.stat().st_size)


class Damage(NamedTuple):
    """What was done, and how it must be noticed."""

    what: str
    names: set[str]  # `verify` names one of them
    harmless: bool = False  # whether it need not be noticed if readers get the same rows
    hides_end: bool = False  # whether readers may miss the last rows until the next append


def _unnoticed(world: World, damage: Damage) -> str | None:
    """What is wrong: damage that `verify` does not find, or wrong rows."""
    try:
        found = [": ".join(each) for each in verify(Log.open(world.log.folder)).findings]
    except TamisError as why:
        found = [str(why)]
    noticed = any(name in each for name in damage.names for each in found)
    try:
        read = content(world.log.folder)
    except TamisError:
        same = False
    else:
        same = read == world.content
        if not (same or (damage.hides_end and _is_prefix(read, world.content))):
            return f"{damage.what}: wrong rows, up to {read.end}"
    return None if noticed or (same and damage.harmless) else f"{damage.what}: found {found}"


def _is_prefix(read: Content, whole: Content) -> bool:
    before = {number: row for number, row in whole.events.items() if number < read.end}
    kept = sum(number < read.end for number in whole.changes["sequence"].to_pylist())
    return read.events == before and read.changes == whole.changes.slice(0, kept)


def _finish(campaign: str, tried: int, failures: list[str | None], started: float) -> None:
    wrong = [each for each in failures if each is not None]
    soak_report.record(campaign, tried, len(wrong), time.perf_counter() - started)
    assert not wrong, "\n".join(wrong[:10])


# -- bits ------------------------------------------------------------------------------------------


@contextmanager
def _flipped(path: Path, at: int, bit: int) -> Iterator[None]:
    """Flip a bit of a file during the block."""
    with path.open("r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, at)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), at)
        yield
        os.pwrite(file.fileno(), bytes([byte]), at)


def test_every_flipped_bit_is_found(world: World) -> None:
    draw = random.Random(soak_report.seed())
    started, failures = time.perf_counter(), []
    paths = _paths(world.log)
    sizes = [each.stat().st_size for each in paths]
    for _ in range(FLIPS):
        # Half of them in any byte, half in any file: the head is small, and matters.
        weights = sizes if draw.random() < 0.5 else [1] * len(paths)
        (path,) = draw.choices(paths, weights)
        at, bit = draw.randrange(path.stat().st_size), draw.randrange(8)
        with _flipped(path, at, bit):
            damage = Damage(f"{path.name}: bit {bit} of byte {at}", {path.name})
            failures.append(_unnoticed(world, damage))
    assert verify(world.log).findings == []
    _finish("damage-flips", FLIPS, failures, started)


# -- files -----------------------------------------------------------------------------------------


def _truncate(world: World, draw: random.Random) -> Damage:
    path = draw.choice(_paths(world.log))
    size = draw.randrange(path.stat().st_size)
    os.truncate(path, size)
    return Damage(f"{path.name} cut to {size} bytes", {path.name})


def _swap(world: World, draw: random.Random) -> Damage:
    one, two = draw.sample(_segments(world.log), 2)
    one.rename(one.with_name("x"))
    two.rename(one)
    one.with_name("x").rename(two)
    return Damage(f"{one.name} and {two.name} swapped", {one.name, two.name})


def _delete(world: World, draw: random.Random) -> Damage:
    segments = _segments(world.log)
    path = draw.choice([*_paths(world.log), segments[-1]])
    path.unlink()
    return Damage(f"{path.name} deleted", {path.name})


def _foreign(world: World, draw: random.Random) -> Damage:
    """Other files stand in for a document: with the document of another log they are foreign."""
    path = draw.choice(_paths(world.log))
    shutil.copy(world.other.folder / path.relative_to(world.log.folder), path)
    return Damage(f"{path.name} of another log", {path.name, "head: is damaged"})


def _duplicate(world: World, draw: random.Random) -> Damage:
    path, end = draw.choice(_segments(world.log)), world.log.end
    first = draw.choice((end, end + 1, int(path.stem) + 1, draw.randrange(end), 10**20 - 1))
    name = f"{first:020d}.segment"
    if path.with_name(name).exists():
        name = f"{end + 7:020d}.segment"
    shutil.copy(path, path.with_name(name))
    return Damage(f"{path.name} copied to {name}", {name})


def _junk(world: World, draw: random.Random) -> Damage:
    end = world.log.end
    names = ("x", "1.segment", f"{end:020d}.segment", f"{end + 5:020d}.segment", "9" * 20, "x\ny")
    path = world.log.folder / "segments" / draw.choice(names)
    path.write_bytes(draw.randbytes(draw.choice((0, 10, 300, 5000))))
    return Damage(f"{path.name} invented", {path.name})


def _older(world: World, draw: random.Random) -> Damage:
    """A copy from before: of a file that grew, or of a segment that was merged or trimmed since."""
    copy = draw.choice(world.older)
    path = draw.choice([each for each in copy.rglob("*") if each.is_file()])
    name = path.relative_to(copy)
    shutil.copy(path, world.log.folder / name)
    return Damage(f"{name} of {copy.name}", {""}, harmless=True, hides_end=path.name == "head")


def _segments(log: Log) -> list[Path]:
    return sorted((log.folder / "segments").iterdir())


KINDS = (_truncate, _swap, _delete, _foreign, _duplicate, _junk, _older)


def test_every_damaged_file_is_found(world: World) -> None:
    draw = random.Random(soak_report.seed())
    started, failures = time.perf_counter(), []
    whole = {path: path.read_bytes() for path in world.log.folder.rglob("*") if path.is_file()}
    for turn in range(DAMAGES):
        failures.append(_unnoticed(world, KINDS[turn % len(KINDS)](world, draw)))
        for path in world.log.folder.rglob("*"):
            if path.is_file() and path not in whole:
                path.unlink()
        for path, data in whole.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
    assert verify(world.log).findings == []
    _finish("damage-files", DAMAGES, failures, started)
