"""Backups of a service under load, and kills in the middle of them."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import httpx2

from tamis.broker.broker import Broker
from tamis.store.log import Log
from tamis.store.verification import verify
from tests.service_process import service
from tests.soak_report import seed

KILLS = 3


def _backup(data: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tamis.cli.main", "backup", str(data), str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class _Load:
    """Publishes events one by one; their numbers were acknowledged."""

    def __init__(self, address: str) -> None:
        self.numbers: list[int] = []
        self._address, self._stop = address, Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with httpx2.Client(base_url=self._address, timeout=60) as client:
            while not self._stop.is_set():
                answer = client.post("/v1/events", json=[{"price": 1}, {"price": 9}])
                self.numbers.append(answer.json()["first"])

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def test_backups_under_load_hold_what_was_acknowledged_before_them(tmp_path: Path) -> None:
    data, draw = tmp_path / "data", random.Random(seed())
    with service(data) as started:
        body = {"condition": "price < 5", "lease": None}
        lease = httpx2.post(f"{started.address}/v1/subscriptions", json=body).json()
        load = _Load(started.address)
        for kill in range(KILLS):
            killed = _backup(data, tmp_path / f"killed {kill}")
            time.sleep(draw.uniform(0.3, 1.5))
            killed.kill()
            killed.wait()
        promised = len(load.numbers)
        whole = _backup(data, tmp_path / "one")
        said, errors = whole.communicate()
        assert whole.returncode == 0, errors
        again = _backup(data, tmp_path / "two", "--since", str(tmp_path / "one"))
        assert again.wait() == 0
        load.stop()
        assert started.stop() == 0
    names = {path.name for path in tmp_path.iterdir()}
    for kill in range(KILLS):  # it was whole before the kill, or is not there
        if f"killed {kill}" in names:
            assert _restored(tmp_path / f"killed {kill}") == 0
    assert "the log up to" in said
    for name in ("one", "two"):
        assert _restored(tmp_path / name, str(tmp_path / f"from {name}")) == 0
        log = Log.open(tmp_path / f"from {name}" / "log")
        assert verify(log).good
        assert log.end > load.numbers[promised - 1]
        with Broker(tmp_path / f"from {name}") as broker:
            broker.matching.wait(log.end - 1, 60)
            page = broker.notifications(-1, [lease["id"]], 1_000_000)
            found = [each.sequence for each in page.notifications]
            assert found == [number for number in load.numbers if number < log.end]


def _restored(backup: Path, *where: str) -> int:
    options = [*where] if where else ["--check"]
    command = [sys.executable, "-m", "tamis.cli.main", "restore", str(backup), *options]
    return subprocess.run(command, check=False, capture_output=True).returncode
