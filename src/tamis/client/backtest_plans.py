"""The requests of back-tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tamis.client.answers import BacktestReport
from tamis.client.call import ServiceCall
from tamis.client.plans import NATIVE, delete, fetch, quoted, send

_PATH = "/v1/backtest"


def start_backtest(
    condition: str,
    *,
    language: str = NATIVE,
    first: int | None = None,
    end: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    samples: int | None = None,
    buckets: int | None = None,
) -> ServiceCall[BacktestReport]:
    """Count the events that are kept and that a condition would have matched.

    `first` and `end` are sequence numbers, `since` and `until` moments with a time zone. A report
    without `matched` is not done: ask for it by its id with `show_backtest`. `backtest` waits.
    """
    given: dict[str, Any] = {
        "condition": condition,
        "language": language,
        "first": first,
        "end": end,
        "since": since,
        "until": until,
        "samples": samples,
        "buckets": buckets,
    }
    body = {name: value for name, value in given.items() if value is not None}
    return send("POST", _PATH, body, BacktestReport, repeatable=True)


def show_backtest(id: str) -> ServiceCall[BacktestReport]:
    """A back-test: its result, or its progress."""
    return fetch(f"{_PATH}/{quoted(id)}", BacktestReport)


def cancel_backtest(id: str) -> ServiceCall[None]:
    """Stop a back-test, and forget it."""
    return delete(f"{_PATH}/{quoted(id)}")
