"""A broker starts on what a killed one has left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.broker import recovery
from tamis.broker.access.tickets import TicketOffice
from tamis.broker.broker import Broker
from tamis.broker.data_folder import DataFolder
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.notification_files import NotificationFiles
from tamis.errors import BrokerError, BrokerStoppedError, StoreError
from tamis.store import segment_files
from tamis.store.changes import subscribe
from tamis.store.head import CLEAN, Head, write_head
from tamis.store.log import Log
from tests.unit.broker.test_webhooks import until


def test_a_pack_without_an_acknowledgement_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pack is whole, and its process died before the head said so."""
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        broker.subscribe("price < 1").result()

    def die(opened: int, head: Head) -> None:
        if head.state == CLEAN:
            raise KeyboardInterrupt
        write_head(opened, head)

    with monkeypatch.context() as patched:
        patched.setattr(segment_files, "write_head", die)
        with pytest.raises(KeyboardInterrupt):
            Log.open(DataFolder(tmp_path).log).change(subscribe([7], ["price < 7"]))
    with Broker(tmp_path) as broker:
        third = broker.subscribe("price < 3").result().id
        assert {each.id for each in broker.state.subscriptions()} == {0, 7, third}


def test_a_lost_key_of_the_server_is_not_replaced(tmp_path: Path) -> None:
    """The tickets that it made would all be wrong."""
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        broker.subscribe("price < 1").result()
    kept = DataFolder(tmp_path).key.rename(tmp_path / "kept")
    with pytest.raises(BrokerError, match="backup"):
        Broker(tmp_path)
    kept.rename(DataFolder(tmp_path).key)
    Broker(tmp_path).close()


def test_another_key_of_the_server_is_refused(tmp_path: Path) -> None:
    """Its tickets and its signatures would all be wrong."""
    for name in ("one", "two"):
        with Broker(tmp_path / name, {"attributes": {"price": "decimal"}}) as broker:
            broker.subscribe("price < 1").result()
    key = DataFolder(tmp_path / "one").key
    right = key.read_text()
    key.write_text(DataFolder(tmp_path / "two").key.read_text())
    with pytest.raises(BrokerError, match="backup"):
        Broker(tmp_path / "one")
    key.write_text(right)
    TicketOffice.rotate(key)
    Broker(tmp_path / "one").close()
    key.write_text(right)
    with pytest.raises(BrokerError, match="backup"):
        Broker(tmp_path / "one")


def test_damaged_notifications_are_refused_and_found_again(tmp_path: Path) -> None:
    """One flipped bit must not notify somebody else."""
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        for at in range(100):
            broker.subscribe(f"price >= {at}").result()
        broker.publish([IncomingEvent('{"price": 99}')]).result()
        until(lambda: broker.matching.files.matched > 100)
    (part,) = (DataFolder(tmp_path).notifications / "notifications").iterdir()
    right = part.read_bytes()
    files = NotificationFiles(DataFolder(tmp_path).notifications, pa.int64())
    (whole,) = files.read(-1, 101)
    assert len(whole.numbers) == 100
    data = len(right) - 8 - int.from_bytes(right[-8:-4], "little")  # the rest describes it
    for at in range(4, len(right), 5):
        part.write_bytes(right[:at] + bytes([right[at] ^ 1]) + right[at + 1 :])
        try:
            found = list(files.read(-1, 101))
        except StoreError:
            continue
        assert at >= data or [each.ids for each in found] == [whole.ids]
    part.unlink()
    with Broker(tmp_path) as broker:
        until(lambda: broker.matching.files.matched > 100)
        (again,) = broker.matching.files.read(-1, 101)
        assert again.ids.equals(whole.ids)


def test_as_many_keys_are_remembered_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events without keys do not count, and the oldest pack is not left out."""
    monkeypatch.setattr(recovery, "MOST", 3)
    keyed = [IncomingEvent('{"price": 1}', "s", str(at)) for at in range(3)]
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        broker.publish(keyed).result()
        broker.publish([IncomingEvent('{"price": 1}')] * 9).result()
        broker.publish([IncomingEvent('{"price": 1}')]).result()
    with Broker(tmp_path) as broker:
        assert broker.recovered.keys == 3
        assert broker.publish(keyed).result().duplicates == 3


def test_a_rebuild_does_not_revive_old_request_keys(tmp_path: Path) -> None:
    now = [4_000_000_000_000_000]
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}, clock=lambda: now[0]) as broker:
        first = broker.subscribe("price < 1", lease=None, request_key="k").result()
        now[0] += 2 * 86_400_000_000
        broker.subscribe("price < 2", lease=None, request_key="other").result()
    with Broker(tmp_path, clock=lambda: now[0], rebuild=True) as broker:
        again = broker.subscribe("price < 1", lease=None, request_key="k").result()
        assert again.id != first.id


def test_a_failed_sync_ends_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the system says that the disk is full: nobody knows what is on disk."""
    broker = Broker(tmp_path, {"attributes": {"price": "decimal"}}, matching=False)
    broker.publish([IncomingEvent('{"price": 1}')]).result()

    def fail(opened: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        with pytest.raises(BrokerStoppedError):
            broker.publish([IncomingEvent('{"price": 1}')]).result(60)
    broker.close()
    assert broker.failure is not None
