"""What a test declares is forgotten after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tamis.operators import Runner, registry


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: dict(each) for name, each in registry._REGISTERED.items()}
    monkeypatch.setattr(registry, "_REGISTERED", known)


@pytest.fixture
def runner() -> Iterator[Runner]:
    with Runner() as made:
        yield made


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where whoever started the tests has it ignored, as background jobs do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
