"""`tamis demo city` as a user runs it: pictures, operators, webhooks, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from tests.unit.cli.calls import Capture, refused

pytest.importorskip("shapely")
pytest.importorskip("cv2")
_LIMIT = 120.0  # seconds, after which a run that hangs is killed


@pytest.mark.slow
def test_the_city(tmp_path: Path) -> None:
    program = (sys.executable, "-u", "-m", "tamis.cli.main", "demo", "city", "--rate", "60")
    process = subprocess.Popen(
        [*program, "--folder", str(tmp_path / "city")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    killer = threading.Timer(_LIMIT, process.kill)
    killer.start()
    said = url = code = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if link := re.search(r"open (http://[\d.:]+)/console#code=(\S+)", line):
            url, code = link.groups()
        if re.search(r"S3 [1-9].*S5 [1-9]", line):
            break  # by webhooks
    assert url, said
    headers = {"Authorization": f"Bearer {code}"}
    calls = httpx2.get(f"{url}/v1/operators", headers=headers).json()
    assert {"locIn", "trafficPattern", "tourBoatCount"} <= {
        each["name"] for each in calls["operators"] if each["calls"]
    }
    process.send_signal(signal.SIGINT)
    said += process.stdout.read()
    assert process.wait() == 0, said
    killer.cancel()
    assert re.search(r"[\d,]+ pictures; notifications: S1 \d", said)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/livez")


def test_a_folder_of_other_events_is_refused(tmp_path: Path, capsys: Capture) -> None:
    from tamis.store import Log

    Log.create(tmp_path / "data" / "log", {"attributes": {"n": "integer"}})
    told = refused(capsys, "demo", "city", "--folder", str(tmp_path))
    assert "belongs to something else" in told
