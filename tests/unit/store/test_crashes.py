"""Refused by the system at any step: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import errno
import resource
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import StoreError
from tamis.store import Log, subscribe
from tests.unit.store.world import files, fresh, prices, published


def test_a_full_disk(log: Log) -> None:
    """A real refusal in the middle of a write: the largest size of a file is limited."""
    log.publish(prices(1, 2))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StoreError, match="File too large; nothing was changed, make room"):
            log.publish(prices(*range(10_000)))
        with pytest.raises(StoreError, match="nothing was changed"):
            log.change(subscribe(["a"], ["price < 5" * 10_000]))
        assert log.publish(prices(3)) == range(2, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert published(log) == [(0, 1), (1, 2), (2, 3)]
    assert log.publish(prices(*range(10_000))) == range(3, 10_003)


def _full(*given: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["os.fdatasync", "os.pwrite"])
@pytest.mark.parametrize("new", [False, True])
def test_each_step_refused(log: Log, monkeypatch: pytest.MonkeyPatch, step: str, new: bool) -> None:
    log.publish(prices(1))
    if new:
        monkeypatch.setattr("tamis.store.segment_files.MOST", 1)
    with monkeypatch.context() as patched:
        patched.setattr(step, _full)
        with pytest.raises(StoreError, match="No space left on device; nothing was changed"):
            log.publish(prices(2))
    assert published(log) == [(0, 1)]
    assert len(files(log)) == 1
    assert log.publish(prices(3)) == range(1, 2)
    assert published(Log.open(log.folder)) == [(0, 1), (1, 3)]


def test_the_sync_of_a_name_refused(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has seen the rows: the number is given to the next."""
    log.publish(prices(1))
    monkeypatch.setattr("tamis.store.segment_files.MOST", 1)
    with monkeypatch.context() as patched:
        patched.setattr("tamis.store.segment_files.sync_folder", _full)
        with pytest.raises(StoreError, match="No space left on device; nothing was changed"):
            log.publish(prices(2))
    assert published(log) == [(0, 1)]
    assert log.publish(prices(3)) == range(1, 2)


def test_making_a_log_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", _full)
        with pytest.raises(StoreError, match="a log cannot be created here: No space left"):
            fresh(tmp_path)
    with pytest.raises(StoreError, match="is not a log"):
        Log.open(tmp_path / "log")
    assert fresh(tmp_path).end == 0
