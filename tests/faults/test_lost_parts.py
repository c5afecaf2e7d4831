"""Derived parts of a data folder that are lost or rolled back: equal after the next start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tamis.store.log import Log
from tests.faults.oracle import expected, written
from tests.warm_servers import WarmServers


def _remove(name: str) -> Callable[[Path, Path], None]:
    def lose(data: Path, earlier: Path) -> None:
        if (data / name).is_dir():
            shutil.rmtree(data / name)
        else:
            for path in data.glob(f"{name}*"):  # with the files of the database beside it
                path.unlink()

    return lose


def _roll_back(name: str) -> Callable[[Path, Path], None]:
    def lose(data: Path, earlier: Path) -> None:
        _remove(name)(data, earlier)
        for path in earlier.glob(f"{name}*"):
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, data / path.name)

    return lose


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(how(name), id=f"{how.__name__.strip('_')} {name}")
        for how in (_remove, _roll_back)
        for name in ("state.db", "notifications", "index")
    ],
)
def test_what_is_derived_is_derived_again(
    tmp_path: Path, servers: WarmServers, schema: str, lose: Callable[[Path, Path], None]
) -> None:
    data, earlier = tmp_path / "data", tmp_path / "earlier"
    leases = _use(servers, data, schema, 5)
    shutil.copytree(data, earlier)
    leases |= _use(servers, data, schema, 5)
    lose(data, earlier)
    leases |= _use(servers, data, schema, 5)
    log = Log.open(data / "log")
    found = written(data / "notifications")
    assert found.keys() == expected(log)
    assert max(found.values()) == 1
    server = servers.start(data).wait_ready()
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        for id, ticket in leases.items():
            answer = client.get(f"/v1/subscriptions/{id}", headers={"Tamis-Ticket": ticket})
            assert answer.status_code == 200
    server.end()


def _use(servers: WarmServers, data: Path, schema: str, many: int) -> dict[int, str]:
    """Start, subscribe, publish, and stop; the tickets by subscription."""
    server = servers.start(data, "--schema", schema).wait_ready()
    leases: dict[int, str] = {}
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        for price in range(many):
            lease = client.post("/v1/subscriptions", json={"condition": f"price < {price + 1}"})
            leases[lease.json()["id"]] = lease.json()["ticket"]
            last = client.post("/v1/events", json={"price": price}).json()["first"]
        id, ticket = next(reversed(leases.items()))
        answer = client.get(
            f"/v1/subscriptions/{id}/notifications",
            params={"after": last - 1, "wait": 30},
            headers={"Tamis-Ticket": ticket},
        )
        assert [each["sequence"] for each in answer.json()["notifications"]] == [last]
    server.end()
    return leases
