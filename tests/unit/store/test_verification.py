"""Damage of any kind is found, and a log goes on without what is lost if somebody chooses so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.errors import StoreError
from tamis.store import Log, cancel, subscribe
from tamis.store.verification import repair, verify
from tests.unit.store.world import files, fresh, prices, published

pytestmark = pytest.mark.usefixtures("small_segments")


@pytest.fixture
def filled(tmp_path: Path) -> Log:
    """A log with packs of all kinds, some merged."""
    log = fresh(tmp_path)
    for n in range(14):
        log.publish(prices(n, n + 1))
        log.change(subscribe([f"id {n}"], ["price < 6"]))
        if n == 5:
            log.compact(log.end)
    log.append(events=prices(*range(3000)), changes=cancel(["id 3"]))
    return log


def _damaged(log: Log) -> bool:
    """Whether reading, or verifying, notices that something is wrong."""
    try:
        return not verify(Log.open(log.folder)).good
    except StoreError:
        return True


def test_a_whole_log_is_good(filled: Log) -> None:
    report = verify(filled)
    assert report.findings == []
    assert report.rows == filled.end


def test_every_flipped_bit_is_found(filled: Log, tmp_path: Path) -> None:
    draw = random.Random(5)
    paths = [each for each in filled.folder.rglob("*") if each.is_file() and each.stat().st_size]
    for _ in range(400):
        path = draw.choice(paths)
        whole = path.read_bytes()
        at = draw.randrange(len(whole))
        changed = bytearray(whole)
        changed[at] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        assert _damaged(filled), f"{path.name} at {at}"
        path.write_bytes(whole)
    assert not _damaged(filled)


def test_every_truncation_is_found(filled: Log) -> None:
    draw = random.Random(6)
    paths = [each for each in filled.folder.rglob("*") if each.is_file() and each.stat().st_size]
    for _ in range(100):
        path = draw.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(whole[: draw.randrange(len(whole))])
        assert _damaged(filled), path.name
        path.write_bytes(whole)


def _delete(folder: Path, names: list[str], other: Path) -> None:
    (folder / random.choice(names)).unlink()


def _swap(folder: Path, names: list[str], other: Path) -> None:
    one, two = random.sample(names, 2)
    (folder / one).rename(folder / "x")
    (folder / two).rename(folder / one)
    (folder / "x").rename(folder / two)


def _foreign(folder: Path, names: list[str], other: Path) -> None:
    name = random.choice(names)
    shutil.copy(other / name, folder / name)


def _invented(folder: Path, names: list[str], other: Path) -> None:
    (folder / f"{random.randrange(1, 10**9):020d}.segment").touch()


@pytest.mark.parametrize("damage", [_delete, _swap, _foreign, _invented])
def test_segments_that_are_not_what_they_were(
    filled: Log, tmp_path: Path, damage: Callable[[Path, list[str], Path], None]
) -> None:
    copy = tmp_path / "copy"
    other = tmp_path / "other"
    (tmp_path / "second").mkdir()
    second = fresh(tmp_path / "second")
    for n in range(15):
        second.publish(prices(n, n + 1))
        second.change(subscribe([f"id {n}"], ["price < 6"]))
    shutil.copytree(second.folder / "segments", other)
    names = [each for each in files(filled) if (other / each).exists() or damage is not _foreign]
    assert len(names) > 2
    for seed in range(12):
        random.seed(seed)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(filled.folder, copy)
        damage(copy / "segments", names, other)
        assert not verify(Log.open(copy)).good


def test_a_damaged_pack_stops_readers_with_its_name(filled: Log) -> None:
    path = filled.folder / "segments" / files(filled)[0]
    whole = bytearray(path.read_bytes())
    whole[300] ^= 4
    path.write_bytes(whole)
    with pytest.raises(StoreError, match=rf"{path.name}.*tamis log verify"):
        published(Log.open(filled.folder))


@pytest.mark.parametrize("which", [0, 1, 2, -2, -1])
@pytest.mark.parametrize("how", ["header", "body", "gone"])
def test_a_log_goes_on_without_what_is_lost(filled: Log, which: int, how: str) -> None:
    rows, end = published(filled), filled.end
    path = filled.folder / "segments" / files(filled)[which]
    whole = bytearray(path.read_bytes())
    whole[20 if how == "header" else 700] ^= 4
    path.unlink() if how == "gone" else path.write_bytes(whole)
    log = Log.open(filled.folder)
    with pytest.raises(StoreError, match="rows are lost"):
        repair(log)
    report = repair(log, skip_lost=True, reason="a test")
    (lost,) = report.lost
    assert verify(Log.open(log.folder)).findings == []
    again = Log.open(log.folder)
    assert again.end == end
    left = [(n, price) for n, price in rows if not lost.first <= n < lost.end]
    assert published(again) == left
    assert again.publish(prices(7)) == range(end, end + 1)
    again.publish(prices(8))
    again.compact(again.end)
    assert published(again) == [*left, (end, 7), (end + 1, 8)]
    assert verify(again).findings == []
    if how != "gone":
        assert list((log.folder / "damaged").iterdir())


def test_a_lost_head_is_written_anew(filled: Log) -> None:
    rows = published(filled)
    (filled.folder / "head").write_bytes(b"")
    with pytest.raises(StoreError, match="head: is damaged; `tamis log repair`"):
        published(filled)
    repair(filled)
    assert published(Log.open(filled.folder)) == rows
    assert verify(filled).findings == []
