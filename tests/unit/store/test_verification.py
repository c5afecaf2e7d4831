"""A damaged log stops readers, and goes on without what is lost if somebody chooses so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from tamis.errors import StoreError
from tamis.store import Log, cancel, subscribe
from tamis.store.repair import repair
from tamis.store.verification import verify
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


def test_a_whole_log_is_good(filled: Log) -> None:
    report = verify(filled)
    assert report.findings == []
    assert report.rows == filled.end


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


@pytest.mark.parametrize("later", [1, 2, 3, 4, 9])
def test_an_older_head_is_reported_and_hides_no_row_from_appends(log: Log, later: int) -> None:
    for n in range(4):  # the segment is complete
        log.publish(prices(n))
    older = (log.folder / "head").read_bytes()
    for n in range(later):
        log.publish(prices(n))
    end = log.end
    (log.folder / "head").write_bytes(older)
    assert any(each.file == "head" or "lies after" in each.what for each in verify(log).findings)
    assert log.publish(prices(7)) == range(end, end + 1)
    assert verify(log).findings == []


def test_a_damaged_newest_slot_hides_no_row(log: Log) -> None:
    for n in range(3):
        log.publish(prices(n))
    for slot in (0, 1):
        with (log.folder / "head").open("r+b") as file:
            file.seek(512 * slot + 40)
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 1]))
            file.flush()
            assert published(Log.open(log.folder)) == [(0, 0), (1, 1), (2, 2)]
            file.seek(-1, 1)
            file.write(bytes([byte]))


def test_a_document_whose_bytes_changed_but_not_its_meaning(log: Log) -> None:
    path = log.folder / "tamis-log.json"
    path.write_bytes(path.read_bytes().rstrip())
    (finding,) = verify(Log.open(log.folder)).findings
    assert finding.file == path.name
    repair(log)
    assert verify(Log.open(log.folder)).findings == []


def test_any_of_the_merged_segments_may_be_left(log: Log) -> None:
    """A power cut may undo the deletion of one and not of another."""
    for n in range(16):
        log.publish(prices(n))
    before = {each: each.read_bytes() for each in (log.folder / "segments").iterdir()}
    rows = published(log)
    log.compact(log.end)
    for path, content in before.items():
        if not path.exists():
            path.write_bytes(content)
            assert published(Log.open(log.folder)) == rows
            assert verify(Log.open(log.folder)).findings == []
            path.unlink()


@pytest.mark.slow
def test_verifying_while_others_append_merge_and_trim(log: Log) -> None:
    done = Event()
    failed: list[BaseException] = []

    def again(act: Callable[[Log], object]) -> None:
        mine = Log.open(log.folder)
        try:
            while not done.is_set():
                act(mine)
        except BaseException as why:
            failed.append(why)
            raise

    def shrink(mine: Log) -> None:
        mine.compact(mine.end, 500)
        mine.trim(max(0, mine.end - 300))

    acts: list[Callable[[Log], object]] = [lambda mine: mine.publish(prices(1)), shrink]
    threads = [Thread(target=again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        while log.end < 800 and not failed:
            assert verify(Log.open(log.folder)).findings == []
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
