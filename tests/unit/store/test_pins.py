"""A batch keeps one version, however often and by how many processes it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis.errors import StoreError
from tamis.store import Version, Versions
from tamis.store.versions import PATIENCE
from tests.unit.store.world import publish_version


def _publish(versions: Versions, *sequences: int) -> None:
    for sequence in sequences:
        publish_version(versions, sequence)


def _left(versions: Versions) -> list[int]:
    return [each.sequence for each in versions.all()]


def test_the_first_call_decides(versions: Versions) -> None:
    _publish(versions, 10)
    assert versions.pin("q", 0).sequence == 10
    _publish(versions, 20)
    assert versions.pin("q", 0).sequence == 10, "asked again"
    assert Versions(versions.folder).pin("q", 0).sequence == 10, "by another process"
    assert versions.pin("q", 1).sequence == 20, "the next batch"
    assert versions.pin("other", 0).sequence == 20, "another query"


_ASKS = """
import sys, time
from pathlib import Path
from tamis.store import Versions, describe
versions, begin = Versions(sys.argv[1]), Path(sys.argv[2])
found = []
while not begin.exists():
    pass
for batch in range(20):
    if batch % 3 == int(sys.argv[3]) % 3:
        at = 100 * batch + int(sys.argv[3])
        with versions.publish(at) as folder:
            describe(folder, sequence=at, schema={}, ids="text", shards=[])
    found.append(versions.pin("q", batch).sequence)
print(found)
"""


@pytest.mark.slow
def test_tasks_that_race_agree(tmp_path: Path) -> None:
    """While each of them publishes versions of its own."""
    versions, begin = Versions(tmp_path / "index"), tmp_path / "begin"
    _publish(versions, 0)
    command = [sys.executable, "-c", _ASKS, str(versions.folder), str(begin)]
    racing = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE) for number in range(4)
    ]
    time.sleep(1.0)  # until all of them wait at the line; if not, they race a little less
    begin.touch()
    said = [process.communicate()[0] for process in racing]
    assert said[0]
    assert len(set(said)) == 1, said
    assert json.loads(said[0]) == sorted(json.loads(said[0])), "never back to an older one"


def test_a_pinned_version_is_not_swept(versions: Versions) -> None:
    for batch, sequence in enumerate((10, 20, 30, 40)):
        _publish(versions, sequence)
        versions.pin("q", batch, keep=2)
    assert versions.sweep(40) == [10, 20]
    assert _left(versions) == [30, 40]
    _publish(versions, 50, 60)
    assert versions.sweep(60) == [50], "nobody had it"
    versions.pin("q", 4, keep=2)
    assert versions.sweep(60) == [30]


def test_old_pins_are_dropped(versions: Versions) -> None:
    _publish(versions, 10)
    for batch in range(5):
        versions.pin("q", batch, keep=3)
    noted = json.loads((versions.folder / "pins" / "q.json").read_text())
    assert noted == {"batches": {"2": 10, "3": 10, "4": 10}}


def test_the_pins_of_an_idle_query_end(versions: Versions) -> None:
    _publish(versions, 10)
    versions.pin("q", 7)
    _publish(versions, 20)
    noted, now = versions.folder / "pins" / "q.json", time.time()
    os.utime(noted, (now, now - PATIENCE + 60))
    assert versions.sweep(20) == []
    os.utime(noted, (now, now - PATIENCE - 60))
    assert versions.sweep(20) == [10]
    with pytest.raises(StoreError, match=r"batch 7 of the query q .* swept since"):
        versions.pin("q", 7)
    assert versions.pin("q", 8).sequence == 20, "what comes is matched as ever"


def test_files_of_a_process_that_was_killed_are_removed(versions: Versions) -> None:
    _publish(versions, 10)
    versions.pin("q", 0)
    (versions.folder / "pins" / ".q.json.0123456789abcdef.tmp").write_text('{"batches"')
    _publish(versions, 20)
    assert [versions.pin("q", batch).sequence for batch in (0, 1)] == [10, 20]
    assert [each.name for each in (versions.folder / "pins").iterdir()] == ["q.json"]


def test_refusals(versions: Versions) -> None:
    with pytest.raises(StoreError, match="the version of a batch cannot be noted"):
        versions.pin("q", 0)
    versions.folder.mkdir()
    with pytest.raises(StoreError, match="no version to match with"):
        versions.pin("q", 0)
    _publish(versions, 1)
    with pytest.raises(StoreError, match="a query is named"):
        versions.pin("../q", 0)
    versions.pin("q", 0)
    (versions.folder / "pins" / "q.json").write_text('{"batches": [1]}')
    with pytest.raises(StoreError, match="does not say which batch"):
        versions.pin("q", 0)
    assert isinstance(versions.at(1), Version)
