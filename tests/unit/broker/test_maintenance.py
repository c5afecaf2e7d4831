"""Backup, restore and erasing of a data folder."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tamis.broker.access.caller import Caller
from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.maintenance.backup import back_up, restore
from tamis.broker.maintenance.erasure import erase_event, erase_owner
from tamis.broker.matching.notification_reader import Notification
from tamis.errors import BrokerError
from tamis.files.json_document import write_json
from tamis.store.document import read_document, signed
from tamis.store.log import DOCUMENT, FORMAT, Log
from tamis.store.verification import verify
from tests.unit.cli.calls import run

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}
ANN, BEN = (
    Caller("ann", frozenset({"subscriber", "publisher"})),
    Caller("ben", frozenset({"subscriber", "publisher"})),
)


def _publish(broker: Broker, *prices: int) -> list[int]:
    events = [IncomingEvent(f'{{"price": {price}, "title": "item {price}"}}') for price in prices]
    return broker.publish(events).result().numbers


def _all(broker: Broker) -> list[Notification]:
    broker.matching.wait(broker.log.end - 1, 60)
    page = broker.notifications(broker.log.begin - 1, None, 10_000)
    return page.notifications


def _text(folder: Path) -> bytes:
    """All bytes of a folder, as somebody who looks for something would read them."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _filled(folder: Path) -> tuple[list[Notification], dict[str, list[Any]]]:
    """A folder with two owners, and what they were notified of."""
    with Broker(folder, SCHEMA) as broker:
        ann = broker.subscribe("price < 5", caller=ANN, name="ann-secret").result()
        ben = broker.subscribe("price > 3", caller=BEN).result()
        first = _publish(broker, 1, 4, 9)
        gone = broker.subscribe("price > 8", caller=ANN, name="ann-secret").result()
        broker.renew(ann.id, ticket=ann.ticket).result()
        second = _publish(broker, 2, 11)
        broker.cancel(gone.id, ticket=gone.ticket).result()
        broker.consumers.set_cursor("ann", "reader", 3)
        ids: dict[str, list[Any]] = {
            "ann": [ann.id, gone.id],
            "ben": [ben.id],
            "events": [*first, *second],
        }
        return _all(broker), ids


def test_a_backup_restores_to_the_same_and_goes_on(tmp_path: Path) -> None:
    found, ids = _filled(tmp_path / "data")
    with Broker(tmp_path / "data") as broker:  # it runs while the backups are taken
        first = back_up(tmp_path / "data", tmp_path / "one")
        assert first.end == broker.log.end
        assert first.shared == 0
        number = _publish(broker, 4)[0]
        second = back_up(tmp_path / "data", tmp_path / "two", since=tmp_path / "one")
        assert second.end == number + 1
        assert second.shared > 0
        _publish(broker, 4)
    for name, more in (("one", 0), ("two", 2)):
        restore(tmp_path / name, None)
        restore(tmp_path / name, tmp_path / f"from {name}")
        with Broker(tmp_path / f"from {name}") as again:
            assert _all(again)[: len(found)] == found
            assert len(_all(again)) == len(found) + more
            assert again.consumers.cursor("ann", "reader") == 3
            assert again.subscription(ids["ben"][0], caller=BEN).condition == "price > 3"
            _publish(again, 4)
            assert len(_all(again)) == len(found) + more + 2
        assert verify(Log.open(tmp_path / f"from {name}" / "log")).good


def test_what_is_derived_need_not_be_in_a_backup_to_come_out_the_same(tmp_path: Path) -> None:
    found, _ = _filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "out")
    restore(tmp_path / "out", tmp_path / "again")
    for name in ("notifications",):
        (tmp_path / "again" / name).rename(tmp_path / name)
    with Broker(tmp_path / "again", rebuild=True) as again:
        assert _all(again) == found


def test_a_damaged_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    _filled(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "out")
    files = [path for path in sorted((tmp_path / "out" / "data").rglob("*")) if path.is_file()]
    for path in files:
        content = path.read_bytes()
        if not content:
            continue
        path.chmod(0o600)
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(BrokerError, match="the backup is damaged"):
            restore(tmp_path / "out", tmp_path / "again")
        assert not (tmp_path / "again").exists()
        path.write_bytes(content)
    restore(tmp_path / "out", tmp_path / "again")
    with pytest.raises(BrokerError, match="exists already"):
        restore(tmp_path / "out", tmp_path / "again")
    with pytest.raises(BrokerError, match="is not a backup"):
        restore(tmp_path / "data", tmp_path / "more")


@pytest.mark.parametrize("which", range(5))
def test_an_erased_event_is_gone_and_the_log_is_whole(tmp_path: Path, which: int) -> None:
    found, ids = _filled(tmp_path / "data")
    number = ids["events"][which]
    text = next(
        price for price, at in zip((1, 4, 9, 2, 11), ids["events"], strict=True) if at == number
    )
    assert f"item {text}".encode() in _text(tmp_path / "data")
    report = erase_event(tmp_path / "data", number)
    assert report.rows == 1
    assert report.notifications == sum(each[0] == number for each in found)
    assert f'"item {text}"'.encode() not in _text(tmp_path / "data")
    left = [each for each in found if each[0] != number]
    log = Log.open(tmp_path / "data" / "log")
    assert verify(log).good
    with Broker(tmp_path / "data") as broker:
        assert _all(broker) == left
        end = log.end
        assert _publish(broker, 6) == [end]
        assert len(_all(broker)) == len(left) + 1
    (tmp_path / "data" / "notifications").rename(tmp_path / "aside")
    with Broker(tmp_path / "data", rebuild=True) as again:  # a replay finds the same
        assert _all(again)[:-1] == left
    with pytest.raises(BrokerError, match=f"no event with the number {number}"):
        erase_event(tmp_path / "data", number)


@pytest.mark.parametrize("trimmed", [False, True])
def test_an_erased_owner_is_gone_and_others_stay(
    tmp_path: Path, trimmed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trimmed:
        monkeypatch.setattr("tamis.store.segment_files.MOST", 1)  # packs of a segment
    found, ids = _filled(tmp_path / "data")
    if trimmed:
        log = Log.open(tmp_path / "data" / "log")
        assert log.trim(ids["events"][0]) > 0
        found = [each for each in found if each[0] >= log.begin]
    assert b"ann-secret" in _text(tmp_path / "data")
    report = erase_owner(tmp_path / "data", "ann")
    assert report.rows == 4  # two subscribes, a renew and a cancel
    assert report.records > 0
    assert any("backups" in each for each in report.out_of_reach)
    everything = _text(tmp_path / "data")
    assert b"ann-secret" not in everything
    assert b"price < 5" not in everything
    log = Log.open(tmp_path / "data" / "log")
    assert verify(log).good
    left = [each for each in found if each[1] not in ids["ann"]]
    with Broker(tmp_path / "data") as broker:
        assert _all(broker) == left
        assert broker.state.count() == 1
        _publish(broker, 4)
        assert [each[1] for each in _all(broker)[len(left) :]] == ids["ben"]
    assert erase_owner(tmp_path / "data", "ann").rows == 0


@pytest.mark.parametrize("last", ["_erase_pairs", "erase_rows", "_erase_records"])
def test_erasing_again_completes_what_a_crash_has_interrupted(
    tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, ids = _filled(tmp_path / "data")
    number = found[0].sequence

    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    erasures = (
        partial(erase_event, tmp_path / "data", number),
        partial(erase_owner, tmp_path / "data", "ann"),
    )
    for erase in erasures:
        with monkeypatch.context() as patched:
            patched.setattr(f"tamis.broker.maintenance.erasure.{last}", crash)
            with pytest.raises(KeyboardInterrupt):
                erase()
        erase()
    assert verify(Log.open(tmp_path / "data" / "log")).good
    assert b"ann-secret" not in _text(tmp_path / "data")
    left = [each for each in found if each.sequence != number]
    with Broker(tmp_path / "data") as broker:
        assert _all(broker) == [each for each in left if each.subscription not in ids["ann"]]


def test_a_copy_of_a_log_in_a_database_is_not_touched(tmp_path: Path) -> None:
    _filled(tmp_path / "data")
    path = tmp_path / "data" / "log" / DOCUMENT
    write_json(path, signed({**read_document(path, FORMAT), "copy": True}))
    for refused in (
        lambda: erase_owner(tmp_path / "data", "ann"),
        lambda: back_up(tmp_path / "data", tmp_path / "out"),
    ):
        with pytest.raises(BrokerError, match="a copy of one in a database"):
            refused()


def test_erasing_needs_the_service_to_be_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _filled(tmp_path / "data")
    with Broker(tmp_path / "data"):
        assert run("erase", str(tmp_path / "data"), "--owner", "ann", "--yes") == 2
        assert "another process serves this folder" in capsys.readouterr().err
    assert run("erase", str(tmp_path / "data")) == 2
    assert run("erase", str(tmp_path / "data"), "--owner", "ann", "--yes") == 0
    shown = capsys.readouterr()
    assert "erased the owner 'ann'" in shown.out
    assert "not reached: backups" in shown.err


def test_every_combination_of_erased_events_of_a_pack(tmp_path: Path) -> None:
    """The rows before, between and after gaps keep their numbers and their contents."""
    for count in range(1, 4):
        for chosen in itertools.combinations(range(3), count):
            folder = tmp_path / "-".join(map(str, chosen))
            with Broker(folder, SCHEMA) as broker:
                _publish(broker, 1, 2, 3)
            for number in chosen:
                erase_event(folder, number)
            log = Log.open(folder / "log")
            assert verify(log).good
            kept = {
                first + row: table["json"][row].as_py()
                for first, table in log.events(0, log.end)
                for row in range(table.num_rows)
            }
            assert kept == {
                number: f'{{"price": {number + 1}, "title": "item {number + 1}"}}'
                for number in range(3)
                if number not in chosen
            }


def test_the_commands_back_up_and_restore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _filled(tmp_path / "data")
    data, out, again = (str(tmp_path / name) for name in ("data", "out", "again"))
    assert run("backup", data, out, "--index") == 0
    assert "the log up to 10" in capsys.readouterr().out
    assert run("restore", out, "--check") == 0
    assert run("restore", out, again) == 0
    assert "whole" in capsys.readouterr().out
    assert run("restore", out) == 2
    assert (tmp_path / "again" / "server.key").stat().st_mode & 0o77 == 0
