"""`tamis import`, with a service that fails between two requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tamis.cli.service import transfer
from tamis.errors import TamisError
from tests.unit.cli.calls import Capture, refused


def test_tickets_are_written_if_a_later_request_fails(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wanted.csv").write_text("id,condition\na,price < 5\nb,price < 6\n")
    sent = 0

    @contextmanager
    def connected(server: str) -> Iterator[None]:
        yield

    def send(client: None, lines: bytes, key: str) -> list[dict[str, Any]]:
        nonlocal sent
        sent += 1
        if sent == 2:
            raise TamisError("the service is gone")
        return [{"line": 1, "id": 7, "ticket": "secret"}]

    monkeypatch.setattr(transfer, "connected", connected)
    monkeypatch.setattr(transfer, "_send", send)
    out = tmp_path / "ids.jsonl"
    said = refused(capsys, "import", f"{tmp_path}/wanted.csv", "--batch", "1", "--out", str(out))
    assert "the service is gone" in said
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"from": "a", "id": "7", "ticket": "secret"}
    ]


def test_the_ids_do_not_replace_the_file_that_is_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "wanted.csv"
    path.write_text("id,condition\na,price < 5\n")
    err = refused(capsys, "import", str(path), "--out", str(path))
    assert "is read by this command" in err
    assert path.read_text().startswith("id,condition")
