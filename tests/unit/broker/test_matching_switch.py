"""Who matches, by `matching.json`; what happens when it or the notifications are lost."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching import inline_matching, matching_switch
from tamis.broker.matching.log_engine import LogEngine
from tamis.cli.log.maintenance import trim
from tamis.errors import StoreError, TamisError
from tamis.replay.compact_parts import compact
from tamis.replay.matching_shifts import INLINE, SPARK, MatchingShifts, SupersededError
from tamis.store.log import Log
from tests.notification_model import expected_pairs, found_pairs

pytestmark = pytest.mark.slow

SCHEMA = {"attributes": {"price": "decimal"}}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with several manifests, each with a part."""
    place = tmp_path_factory.mktemp("filled") / "data"
    with pytest.MonkeyPatch.context() as patch, Broker(place, SCHEMA) as broker:
        patch.setattr(inline_matching, "FLUSH", 0.01)
        for at in range(6):
            broker.subscribe(f"price < {at + 1}").result()
            text = f'{{"price": {at % 3}}}'
            number = broker.publish([IncomingEvent(text)]).result().numbers[0]
            until(partial(_in_files, broker, number))
    return place


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(filled, tmp_path / "data"))


def _in_files(broker: Broker, number: int) -> bool:
    return broker.matching.files.matched > number


def until(reached: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < limit
        time.sleep(0.01)


def check_whole(folder: Path) -> None:
    """The notifications are those of the log, after a start."""
    with Broker(folder) as broker:
        last = broker.publish([IncomingEvent('{"price": 0}')]).result().numbers[0]
        assert broker.matching.wait(last, 60) > last
        page = broker.notifications(-1, None, 10_000).notifications
        read = sorted((each.sequence, each.subscription) for each in page)
    log = Log.open(folder / "log")
    assert read == expected_pairs(log)
    assert found_pairs(folder / "notifications") == expected_pairs(log)


def manifests(folder: Path) -> list[Path]:
    """The manifests in the order of the rows that they cover."""
    found = (folder / "notifications" / "manifests").glob("*.json")
    return sorted(found, key=lambda each: json.loads(each.read_text())["covers"]["start"])


@pytest.mark.parametrize("lost", ["all", "index", "first", "middle", "last", "part", "file"])
def test_what_is_lost_is_matched_again(folder: Path, lost: str) -> None:
    there = manifests(folder)
    assert len(there) >= 5
    if lost == "all":
        shutil.rmtree(folder / "notifications")
    elif lost == "index":
        shutil.rmtree(folder / "index", ignore_errors=True)
    elif lost == "part":
        part = json.loads(there[2].read_text())["parts"][0]
        (folder / "notifications" / part["folder"] / part["name"]).unlink()
    elif lost == "file":
        MatchingShifts(folder).path.unlink()
    elif lost == "first":  # as retention does: what comes before is not kept
        there[0].unlink()
        with Broker(folder) as broker:
            assert broker.matching.files.begin > 0
        return
    else:
        there[{"middle": 2, "last": -1}[lost]].unlink()
    check_whole(folder)


def test_an_old_file_of_shifts_does_no_harm(folder: Path) -> None:
    """It is put back as it was before some switches."""
    shifts = MatchingShifts(folder)
    old = shifts.path.read_bytes()
    log = Log.open(folder / "log")
    for way in (SPARK, INLINE):
        shifts.begin(log, way)
    check_whole(folder)
    shifts.path.write_bytes(old)
    check_whole(folder)


def test_a_damaged_or_strange_file_is_refused(folder: Path) -> None:
    path = MatchingShifts(folder).path
    whole = json.loads(path.read_text())
    for text in ("{", "{}", '{"format": 1, "log": "x", "shifts": []}'):
        path.write_text(text)
        with pytest.raises(TamisError, match=r"--matching inline|belongs to another log|format"):
            Broker(folder)
    path.write_text(json.dumps({**whole, "shifts": []}))
    with pytest.raises(TamisError, match="tamis serve --matching inline"):
        Broker(folder)
    path.unlink()
    check_whole(folder)


def test_a_log_that_was_put_back_is_refused(folder: Path, tmp_path: Path) -> None:
    with Broker(tmp_path / "other", SCHEMA) as broker:
        broker.publish([IncomingEvent('{"price": 1}')]).result()
    shutil.rmtree(folder / "log")
    shutil.copytree(tmp_path / "other" / "log", folder / "log")
    (folder / "state.db").unlink()
    with pytest.raises(TamisError, match="another log"):
        Broker(folder)


def test_who_is_late_adds_nothing(folder: Path) -> None:
    """The shift that is over is refused, and the service goes over to the next while it runs."""
    shifts = MatchingShifts(folder)
    before = shifts.current()
    assert before is not None
    with Broker(folder) as broker:
        log = Log.open(folder / "log")
        after = shifts.begin(log, SPARK)  # as `tamis switch-matching` does in another process
        with pytest.raises(SupersededError, match="went over to spark"), shifts.held(before.name):
            raise AssertionError
        until(lambda: not broker.matching.is_inline)
        number = broker.publish([IncomingEvent('{"price": 0}')]).result().numbers[0]
        assert broker.matching.wait(number, 0.5) <= number, "nobody matches now"
        assert broker.dry_run({"price": 0}) is not None
        assert broker.matching.failure is None
        again = broker.matching.switch(INLINE)
        assert again.start >= after.start
        assert broker.matching.wait(number, 60) > number
    check_whole(folder)


def test_a_lost_file_is_asked_for_if_spark_has_matched(folder: Path) -> None:
    """The service does not guess: it would match in place of Spark."""
    shifts = MatchingShifts(folder)
    there = manifests(folder)[-1]
    document = json.loads(there.read_text())
    there.write_text(json.dumps({**document, "query": "7e3f0d52-0000-4000-8000-000000000000"}))
    shifts.path.unlink()
    with pytest.raises(TamisError, match="say who matches"):
        Broker(folder)
    with Broker(folder, matching=INLINE) as broker:
        assert broker.matching.is_inline


def test_what_is_not_matched_yet_is_not_trimmed(folder: Path) -> None:
    """Also while Spark matches: nobody knows which events it reads."""
    log, shifts = Log.open(folder / "log"), MatchingShifts(folder)
    reached = shifts.begin(log, SPARK).start
    runner = CliRunner()
    refused = runner.invoke(trim, [str(log.folder), str(reached + 1)])
    assert isinstance(refused.exception, StoreError)
    assert f"events from {reached} on are not matched yet" in str(refused.exception)
    assert runner.invoke(trim, [str(log.folder), str(reached)]).exit_code == 0


def test_the_service_merges_small_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_switch, "_MERGED", 0.0)
    few = partial(compact, keep=1, many=2, older=0)
    monkeypatch.setattr(matching_switch, "compact", few)
    before = len(manifests(folder))
    with Broker(folder):
        until(lambda: len(manifests(folder)) < before)
    check_whole(folder)


def test_merged_parts_are_read_in_order(folder: Path) -> None:
    """A broker that has begun before finds them too."""
    place = folder / "notifications"
    with Broker(folder) as broker:
        before = broker.notifications(-1, None, 10_000)
        assert compact(place, keep=1, many=2, older=0) > 0
        assert broker.notifications(-1, None, 10_000) == before
    check_whole(folder)


@pytest.mark.parametrize("why", [StoreError("cannot be read"), OSError("too many open files")])
def test_a_switch_that_fails_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    right = LogEngine.at
    failures: list[Exception] = []

    def fail_twice(*given: Any, **more: Any) -> LogEngine:
        if len(failures) < 2:
            failures.append(why)
            raise why
        return right(*given, **more)

    with Broker(folder) as broker:
        broker.matching.switch(SPARK)
        monkeypatch.setattr(LogEngine, "at", fail_twice)
        MatchingShifts(folder).begin(broker.log, INLINE)
        until(lambda: bool(failures))
        number = broker.publish([IncomingEvent('{"price": 0}')]).result().numbers[0]
        until(lambda: broker.matching.matched > number)
        assert broker.matching.failure is None
    check_whole(folder)
