"""What a power cut leaves of a checkpoint is mended; other damage is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import SparkError
from tamis.replay.manifests import put
from tamis.spark.stream.checkpoint import manifest_name, mend_checkpoint
from tests.power_loss.disk import content
from tests.power_loss.spark_model import write_new

QUERY = "6f2e"
_OFFSET = '{"sequence": %d, "version": -1}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batches 0 and 1 are committed, by Spark and by the sink. Batch 2 has begun."""
    made = tmp_path / "checkpoint"
    write_new(made / "metadata", json.dumps({"id": QUERY}).encode())
    for batch in range(3):
        write_new(made / "offsets" / str(batch), f"v1\n{{}}\n{_OFFSET % batch}".encode())
        if batch < 2:
            write_new(made / "commits" / str(batch), b"v1\n{}")
            name = manifest_name(QUERY, batch, [_OFFSET % batch])
            put(tmp_path / "out", name, {"query": QUERY, "batch": batch}, [])
    return made


def _mended(checkpoint: Path) -> set[str]:
    """The files that went."""
    before = content(checkpoint)
    removed = mend_checkpoint(checkpoint, checkpoint.parent / "out")
    after = content(checkpoint)
    gone = before.keys() - after.keys()
    assert {each: before[each] for each in after} == after
    assert gone <= {str(each.relative_to(checkpoint)) for each in removed}
    assert mend_checkpoint(checkpoint, checkpoint.parent / "out") == []
    return gone


def test_a_whole_checkpoint_stays(checkpoint: Path) -> None:
    assert _mended(checkpoint) == set()
    assert mend_checkpoint(checkpoint / "nowhere", checkpoint.parent / "out") == []
    write_new(checkpoint / "offsets" / "3", b"v2\nof a later Spark")
    assert _mended(checkpoint) == set()


@pytest.mark.parametrize("kind", ["offsets/2", "commits/1"])
@pytest.mark.parametrize("left", [b"", b"v1", b"v1\n{", b"v1\n{}\n\0\0\0\0"])
@pytest.mark.parametrize("sums", [True, False])
def test_what_spark_can_do_again_goes(checkpoint: Path, kind: str, left: bytes, sums: bool) -> None:
    torn, beside = checkpoint / kind, (checkpoint / kind).with_name(f".{kind[-1]}.crc")
    torn.write_bytes(left)
    if not sums:
        beside.unlink()
    expected = {kind, f"{kind[:-1]}.{kind[-1]}.crc"}
    assert _mended(checkpoint) == (expected if sums else {kind})


@pytest.mark.parametrize("name", ["metadata", "offsets/1"])
def test_only_the_checksums_of_what_the_sink_has_synced_go(checkpoint: Path, name: str) -> None:
    path = checkpoint / name
    sums = path.with_name(f".{path.name}.crc")
    sums.write_bytes(sums.read_bytes()[:9])
    assert _mended(checkpoint) == {str(sums.relative_to(checkpoint))}


def test_batches_without_metadata_go(checkpoint: Path) -> None:
    (checkpoint / "metadata").unlink()
    with pytest.raises(SparkError, match=r"metadata: is damaged, and .*out has notifications of"):
        mend_checkpoint(checkpoint, checkpoint.parent / "out")
    assert mend_checkpoint(checkpoint, checkpoint.parent / "other")
    assert content(checkpoint) == {"offsets": None, "commits": None}


@pytest.mark.parametrize("name", ["metadata", "offsets/1"])
@pytest.mark.parametrize("left", [b"", _OFFSET.encode() % 7, b"v1\n{}\n" + _OFFSET.encode() % 7])
def test_damage_of_what_the_sink_has_synced_is_refused(
    checkpoint: Path, name: str, left: bytes
) -> None:
    (checkpoint / name).write_bytes(left)
    before = content(checkpoint)
    with pytest.raises(SparkError, match=f"{name}: is damaged, and .*out has notifications of"):
        mend_checkpoint(checkpoint, checkpoint.parent / "out")
    assert content(checkpoint) == before


def test_before_the_first_batch_all_that_is_torn_goes(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    for name in ("metadata", "offsets/0"):
        write_new(checkpoint / name, b"")
    for name in (".0.61f8.tmp", "..0.61f8.tmp.crc"):
        (checkpoint / "offsets" / name).write_bytes(b"v1")
    mend_checkpoint(checkpoint, tmp_path / "out")
    assert content(checkpoint) == {"offsets": None}
