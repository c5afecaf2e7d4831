"""Versions appear whole or not at all, and go when nobody may need them."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import StoreError
from tamis.store import Shard, Version, Versions, describe
from tests.running import run_script
from tests.unit.store.world import SCHEMA


def _publish(versions: Versions, sequence: int, text: str = "x") -> None:
    with versions.publish(sequence) as folder:
        _write(folder, sequence, text)


def _write(folder: Path, sequence: int, text: str = "x") -> None:
    (folder / "shard-0000").mkdir()
    (folder / "shard-0000" / "data").write_text(text)
    shards = [Shard("shard-0000", 3, len(text))]
    describe(folder, sequence=sequence, schema=SCHEMA, ids="text", shards=shards, operators=["f"])


def _names(versions: Versions) -> list[str]:
    return sorted(each.name for each in versions.folder.iterdir() if each.name != "lock")


def test_published_versions(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "index")
    assert (versions.all(), versions.latest(), versions.at(9)) == ([], None, None)
    for sequence in (10, 30, 20):
        _publish(versions, sequence)
    assert [version.sequence for version in versions.all()] == [10, 20, 30]
    latest = versions.latest()
    assert latest is not None
    assert latest.sequence == 30
    found = {at: versions.at(at) for at in (9, 10, 19, 20, 99)}
    numbers = {at: version and version.sequence for at, version in found.items()}
    assert numbers == {9: None, 10: 10, 19: 10, 20: 20, 99: 30}


def test_what_a_version_says(versions: Versions) -> None:
    _publish(versions, 42)
    version = Version.open(versions.folder / f"v{42:020d}")
    assert version == versions.latest() == pickle.loads(pickle.dumps(version))
    assert hash(version) == hash(versions.latest())
    assert (version.document["schema"], version.ids) == (SCHEMA, "text")
    assert version.document["operators"] == ["f"]
    assert version.shards == [Shard("shard-0000", 3, 1)]
    assert (version.shard_folders[0] / "data").read_text() == "x"
    assert Path(version) == version.folder


def test_a_publish_that_fails_leaves_nothing(versions: Versions) -> None:
    with pytest.raises(ZeroDivisionError), versions.publish(1) as folder:
        _write(folder, 1 // 0)
    with pytest.raises(StoreError, match=r"is not a version: .*empty"), versions.publish(1):
        pass
    wrong = "has the sequence number 2 instead of 1"
    with pytest.raises(StoreError, match=wrong), versions.publish(1) as folder:
        _write(folder, 2)
    assert _names(versions) == []


def test_the_first_of_two_wins(versions: Versions) -> None:
    with versions.publish(5) as slow:
        _publish(versions, 5, "first")
        _publish(Versions(versions.folder), 6)
        _write(slow, 5, "second")
    assert _names(versions) == [f"v{5:020d}", f"v{6:020d}"]
    version = versions.at(5)
    assert version is not None
    assert (version.shard_folders[0] / "data").read_text() == "first"


_DIES = """
import os, sys
from tamis.store import Versions
with Versions(sys.argv[1]).publish(7) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), 9)
"""


def test_drafts_of_killed_publishers_are_deleted(versions: Versions) -> None:
    assert run_script(_DIES, versions.folder, check=False).returncode == -9
    (versions.folder / ".publishing-7-withoutlock").mkdir()
    (versions.folder / ".swept-v7").mkdir()
    assert versions.all() == []
    with versions.publish(8) as living:
        assert _names(versions) == [living.name, living.name + ".lock"]
        _publish(versions, 9)
        assert living.is_dir()
        _write(living, 8)
    assert _names(versions) == [f"v{8:020d}", f"v{9:020d}"]


def test_sweeping(versions: Versions) -> None:
    assert versions.sweep(5) == []
    for sequence in (10, 20, 30):
        _publish(versions, sequence)
    mapped = (versions.all()[0].shard_folders[0] / "data").open()
    assert versions.sweep(9) == []
    assert versions.sweep(19) == []
    assert versions.sweep(25) == [10]
    assert versions.sweep(1000) == [20]
    assert _names(versions) == [f"v{30:020d}"]
    assert mapped.read() == "x"
    mapped.close()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"format": 7}, "has format 7"),
        ({"ids": "uuid"}, "ids are 'text' or 'int64', not 'uuid'"),
        ({"shards": None}, "lacks 'shards'"),
        ({"shards": [{"folder": "x"}]}, "a shard has folder, subscriptions, bytes"),
        ({"shards": [Shard("gone", 1, 1)._asdict()]}, "the shard 'gone' is missing"),
        ({"shards": [Shard("..", 1, 1)._asdict()]}, "the folder of a shard is named '..'"),
        ({"shards": [Shard(tempfile.gettempdir(), 1, 1)._asdict()]}, "without '/'"),
    ],
)
def test_damaged_versions(versions: Versions, changed: dict[str, Any], says: str) -> None:
    _publish(versions, 1)
    path = versions.folder / f"v{1:020d}" / "version.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(StoreError, match=says):
        Version.open(path.parent)


@pytest.mark.parametrize("text", ["{}", '{"sequence": [null]}', '{"sequence": 1e999}'])
def test_damaged_readers(versions: Versions, text: str) -> None:
    _publish(versions, 1)
    _publish(versions, 2)
    versions.retain("reader", 2)
    (versions.folder / "readers" / "reader.json").write_text(text)
    with pytest.raises(StoreError, match=r"reader\.json: is damaged"):
        versions.sweep(2)


def test_folders_that_are_not_a_version(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a version; versions have names like v0"):
        Version.open(tmp_path)
    with pytest.raises(StoreError, match="there is no such folder"):
        Version.open(tmp_path / f"v{1:020d}")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be read: Not a directory"):
        Versions(tmp_path / "file").all()
    with pytest.raises(StoreError, match="a version cannot be published here"):
        _publish(Versions(tmp_path / "file"), 1)


def test_a_retained_version_stays(versions: Versions) -> None:
    for sequence in (10, 20, 30):
        _publish(versions, sequence)
    versions.retain("slow", 25)
    versions.retain("quick", 31)
    assert versions.sweep(40) == [10]
    versions.retain("slow", None)
    assert versions.sweep(40) == [20]
    for name in ("../up", ".hidden"):  # files with hidden names are ignored, so it would be too
        with pytest.raises(StoreError, match="a reader is named"):
            versions.retain(name, 1)


def test_a_held_version_stays_until_it_is_released(versions: Versions) -> None:
    with versions.held() as nothing:
        assert nothing is None
    assert not (versions.folder / "jobs").exists()
    for sequence in (1, 5, 9):
        _publish(versions, sequence)
    with versions.held(5) as version:
        assert version is not None
        assert version.sequence == 5
        assert versions.sweep(9) == [1]
    assert versions.sweep(9) == [5]
    with versions.held() as version:
        _publish(versions, 12)
        assert versions.sweep(12) == []
        assert version is not None
        assert version.folder.is_dir()
    assert versions.sweep(12) == [9]


def test_a_job_that_never_ended_is_forgotten_after_a_day(versions: Versions) -> None:
    for sequence in (1, 5, 9):
        _publish(versions, sequence)
    job = versions.hold([1, 5])
    assert job is not None
    assert versions.sweep(9) == []
    long_ago = time.time() - 25 * 3600
    os.utime(job, (long_ago, long_ago))
    assert versions.sweep(9) == [1, 5]
    assert not job.exists()


def test_a_new_version_is_refused_if_one_exists(versions: Versions) -> None:
    _publish(versions, 1, "first")
    refused = pytest.raises(StoreError, match="a version of sequence number 1 already")
    with refused, versions.publish(1, new=True):
        pytest.fail("it is refused before anybody works for it")
    refused = pytest.raises(StoreError, match="a version of sequence number 2 already")
    with refused, versions.publish(2, new=True) as folder:
        _write(folder, 2, "late")
        _publish(versions, 2, "early")
    assert [each.sequence for each in versions.all()] == [1, 2]
