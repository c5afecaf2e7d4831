"""Fixtures that several tests on Spark share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.replay import log_events, parquet_events
from tests.integration.spark import backtest_offers, stats_offers


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred events are several tasks, and row groups are cut."""
    monkeypatch.setattr(parquet_events, "_LEAST", 64)
    monkeypatch.setattr(log_events, "_FEW", 64)


@pytest.fixture
def log(tmp_path: Path) -> backtest_offers.Past:
    """A log with events and changes, for back-tests."""
    return backtest_offers.past_log(tmp_path / "log")


@pytest.fixture
def events(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Files of events for statistics, and their rows."""
    return tmp_path / "events", stats_offers.written(tmp_path / "events")
