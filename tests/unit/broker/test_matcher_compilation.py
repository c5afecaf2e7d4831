"""A matcher stands in while the default one is compiled, in a process of its own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tamis.broker.broker import Broker
from tamis.broker.incoming import IncomingEvent
from tamis.broker.matching.inline_matching import InlineMatching
from tamis.broker.matching.matcher_compilation import MatcherCompilation, compile_matcher
from tamis.broker.matching.matching_switch import MatchingSwitch
from tamis.engine import Engine

SCHEMA = {"attributes": {"price": "decimal"}}


def _engine(broker: Broker) -> Engine:
    matching = broker.matching
    assert isinstance(matching, MatchingSwitch)
    assert isinstance(matching._finder, InlineMatching)
    return matching._finder._follower.engine


def _found(broker: Broker, price: int) -> list[int]:
    """Who is notified of an event."""
    number = broker.publish([IncomingEvent(f'{{"price": {price}}}')]).result().numbers[0]
    assert broker.matching.wait(number, 60) > number
    return sorted(
        id for each in broker.matching.notifications(number - 1) for id in each.ids.to_pylist()
    )


@pytest.mark.slow
def test_a_matcher_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is the real one; here it finds the code of the matcher on disk."""
    monkeypatch.setattr(MatcherCompilation, "is_needed", lambda: True)
    with Broker(tmp_path, SCHEMA, at_once=True) as broker:
        for at in range(100):
            broker.subscribe(f"price < {at}").result()
        assert "matcher scan" in repr(_engine(broker))
        assert _found(broker, 90) == list(range(91, 100))
        until = time.monotonic() + 300
        while "matcher scan" in repr(_engine(broker)):
            assert time.monotonic() < until
            assert _found(broker, 95) == list(range(96, 100))
            time.sleep(0.1)
        assert "matcher tamis" in repr(_engine(broker))
        assert _found(broker, 80) == list(range(81, 100))
        _engine(broker).check()


def test_a_broker_that_stops_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[MatcherCompilation] = []

    class Kept(MatcherCompilation):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)

        is_needed = staticmethod(lambda: True)

    monkeypatch.setattr("tamis.broker.matching.log_engine.MatcherCompilation", Kept)
    with Broker(tmp_path, SCHEMA, at_once=True):
        (process,) = started
    assert process.has_ended
    with Broker(tmp_path):
        assert len(started) == 1, "it was not asked for"


def test_it_uses_all_that_a_broker_uses() -> None:
    compile_matcher()  # its conditions and events are valid
