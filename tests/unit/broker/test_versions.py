"""Versions that the broker compiles."""

from __future__ import annotations

from pathlib import Path

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.version_keeper import VersionKeeper
from tamis.store.versions import Versions


def test_a_version_is_compiled_in_a_child_process_and_used(tmp_path: Path) -> None:
    """The next start opens it, and takes in only what came since."""
    with Broker(tmp_path, {"attributes": {"price": "decimal"}}) as broker:
        for at in range(100):
            broker.subscribe(f"price < {at}").result()
        broker.publish([IncomingEvent('{"price": 50}')]).result()
        broker.matching.wait(100, 60)
    with Broker(tmp_path) as broker:
        files = broker.matching.files
        keeper = VersionKeeper(broker.log, broker.folder.index, lambda: files.matched, 50)
        assert keeper.look()
        assert not keeper.look(), "nothing has changed since"
        keeper.stop()
    version = Versions(tmp_path / "index").latest()
    assert version is not None
    assert version.shards[0].subscriptions == 100
    with Broker(tmp_path) as broker:
        number = broker.publish([IncomingEvent('{"price": 50}')]).result().numbers[0]
        broker.matching.wait(number, 60)
        (pairs,) = [each for each in broker.matching.notifications(100) if len(each.numbers)]
        assert sorted(pairs.ids.to_pylist()) == list(range(51, 100))
