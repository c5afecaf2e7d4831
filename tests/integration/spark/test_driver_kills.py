"""A driver of Spark that is killed for good while matching is switched: nothing lost or twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tamis.replay.manifests import list_manifests
from tamis.replay.matching_shifts import INLINE, SPARK
from tamis.store.log import Log
from tests.integration.spark.test_switch import Story
from tests.notification_model import expected_pairs, found_pairs
from tests.soak_report import seed

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("TAMIS_DRIVER_KILLS", "1"))  # each starts Spark anew


@contextmanager
def _driver(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`tamis spark run`, with Java and workers in a group of its own, that is killed in the end."""
    with (data.parent / "driver.txt").open("ab") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "tamis.cli.main", "spark", "run", "--data", str(data)],
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _by_spark(data: Path) -> int:
    """How many batches Spark has committed."""
    found = list_manifests(data / "notifications").values()
    return sum(not str(each["query"]).startswith(INLINE) for each in found)


def test_a_driver_is_killed_during_a_switch(tmp_path: Path) -> None:
    draw = random.Random(seed())
    data = tmp_path / "data"
    story = Story(data, draw)
    story.go_on(20)
    for step in range(ROUNDS):
        story.broker.matching.switch(SPARK)
        before = _by_spark(data)
        with _driver(data) as driver:
            while _by_spark(data) < before + 2:
                assert driver.poll() is None, "the driver has ended"
                story.go_on(1)
                time.sleep(1)
            if step % 2:  # it is dead before the switch begins
                _kill(driver)
                story.go_on(10)
            switching = Thread(target=story.broker.matching.switch, args=(INLINE,))
            switching.start()
            switching.join(draw.random() * 0.05)
            _kill(driver)
            switching.join()
        assert story.broker.matching.is_inline
        story.go_on(10)
        story.wait()
    story.broker.close()
    log = Log.open(data / "log")
    assert _by_spark(data) >= 2 * ROUNDS
    assert found_pairs(data / "notifications") == expected_pairs(log)
