"""What a test declares is forgotten after it."""

from __future__ import annotations

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
