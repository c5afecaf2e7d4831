"""A broker starts on what a killed one has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.broker.broker import Broker
from tamis.broker.data_folder import DataFolder
from tamis.store import segment_files
from tamis.store.changes import subscribe
from tamis.store.head import CLEAN, Head, write_head
from tamis.store.log import Log


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
