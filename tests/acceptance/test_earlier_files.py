"""Saved engines, logs and versions that earlier commits wrote give the same answers today."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tamis import Engine
from tamis.errors import StoreError
from tamis.model.schema import Schema
from tamis.store import Log, SubscriptionSnapshot, Versions, cancel, subscribe
from tamis.store.earlier.upgrade import upgrade
from tamis.store.verification import verify

DATA = Path(__file__).parent.parent / "data" / "earlier"
COMMITS = sorted(path for path in DATA.iterdir() if path.is_dir() and path.name != "__pycache__")
ENGINES = [path for commit in COMMITS for path in sorted(commit.glob("engine-*.zip"))]


def _unpacked(archive: Path, folder: Path) -> Path:
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    return folder


def _expected(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _matched(engine: Engine, events: list[dict[str, Any]]) -> list[list[str]]:
    return [sorted(map(str, engine.match(event))) for event in events]


def test_there_are_files() -> None:
    assert COMMITS
    assert len(ENGINES) >= 6


@pytest.mark.parametrize("archive", ENGINES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_saved_engine_matches(archive: Path, tmp_path: Path) -> None:
    expected = _expected(archive.parent / "engines.json")
    engine = Engine.open(_unpacked(archive, tmp_path) / "engine")
    assert sorted(map(str, engine.ids())) == sorted(expected["subscriptions"])
    assert _matched(engine, expected["events"]) == expected["matched"]
    answer = engine.match_batch(expected["events"])
    found = [sorted(map(str, answer[at])) for at in range(len(expected["events"]))]
    assert found == expected["matched"]
    # It goes on as an engine of today.
    gone = next(id for ids in expected["matched"] for id in ids)
    engine.unsubscribe(gone)
    engine.subscribe("price > 0", id="new")
    changed = [sorted({*ids, "new"} - {gone}) for ids in expected["matched"]]
    assert _matched(engine, expected["events"]) == changed
    engine.save(tmp_path / "engine", replace=True)
    assert _matched(Engine.open(tmp_path / "engine"), expected["events"]) == changed


def _engine(snapshot: SubscriptionSnapshot, schema: Schema) -> Engine:
    engine = Engine(schema)
    for id, live in snapshot.items():
        engine.subscribe(live.condition, id=id)
    return engine


def _replayed(log: Log) -> dict[str, list[str]]:
    """Match each event of a log with the subscriptions that are live at its place."""
    schema, snapshot, found = Schema.from_dict(log.schema), SubscriptionSnapshot(), {}
    for first, table in log.events(0):
        for at, text in enumerate(table["json"].to_pylist()):
            snapshot.fold(log.changes(snapshot.sequence, first + at), first + at)
            (ids,) = _matched(_engine(snapshot, schema), [json.loads(text)])
            found[str(first + at)] = ids
    return found


@pytest.mark.parametrize("commit", COMMITS, ids=lambda path: path.name)
def test_a_log_is_replayed(commit: Path, tmp_path: Path) -> None:
    expected = _expected(commit / "log.json")
    log = Log.open(_unpacked(commit / "log.zip", tmp_path) / "log")
    assert log.end == expected["end"]
    assert _replayed(log) == expected["matched"]
    if log.format == 1:
        with pytest.raises(StoreError, match="run `tamis log upgrade"):
            log.change(cancel(["new"]))
        upgraded = list(upgrade(log.folder))
        assert upgraded[-1] == (log.end, log.end)
        assert list(upgrade(log.folder)) == []
        log = Log.open(log.folder)
        assert log.format == 2
        assert verify(log).findings == []
        assert _replayed(log) == expected["matched"]
    # It can be appended to and compacted.
    log.change(subscribe(["new"], ["price > 0"]))
    log.change(cancel([next(iter(expected["live"]))]))
    log.compact(log.end)
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0), log.end)
    live = {**expected["live"], "new": "price > 0"}
    del live[next(iter(expected["live"]))]
    assert {id: each.condition for id, each in snapshot.items()} == live
    assert _replayed(Log.open(log.folder)) == expected["matched"]


@pytest.mark.parametrize("calls", range(0, 60, 3))
def test_an_upgrade_killed_at_any_call(
    calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves a log that reads the same, and the next upgrade finishes it."""
    commit = DATA / "3a2cb58"
    expected = _expected(commit / "log.json")
    folder = _unpacked(commit / "log.zip", tmp_path) / "log"
    left = calls

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return do(*given, **options)

        return run

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        for name in ("pwrite", "open", "fsync", "fdatasync"):
            patched.setattr(os, name, counted(getattr(os, name)))
        for name in ("unlink", "rename"):
            patched.setattr(Path, name, counted(getattr(Path, name)))
        list(upgrade(folder))
    assert _replayed(Log.open(folder)) == expected["matched"]
    list(upgrade(folder))
    log = Log.open(folder)
    assert _replayed(log) == expected["matched"]
    assert verify(log).findings == []
    assert not [each for each in (folder / "segments").iterdir() if "-" in each.name]


@pytest.mark.parametrize("commit", COMMITS, ids=lambda path: path.name)
def test_a_version_has_the_subscriptions_of_its_place(commit: Path, tmp_path: Path) -> None:
    expected = _expected(commit / "log.json")
    folder = _unpacked(commit / "log.zip", tmp_path)
    log, version = Log.open(folder / "log"), Versions(folder / "index").latest()
    assert version is not None
    versions = Versions(folder / "index")
    versions.check_log(log)
    snapshot = SubscriptionSnapshot()
    snapshot.fold(log.changes(0, version.sequence), version.sequence)
    engine = Engine.open(version.shard_folders[0])
    assert sorted(map(str, engine.ids())) == sorted(map(str, snapshot))
    first, table = list(log.events(0, version.sequence))[-1]
    events = [json.loads(text) for text in table["json"].to_pylist()]
    numbers = [str(first + at) for at in range(len(events))]
    assert _matched(engine, events) == [expected["matched"][number] for number in numbers]
    assert versions.pin("query", 0) == version
