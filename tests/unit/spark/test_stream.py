"""What of running a stream can be seen without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import SparkError, StoreError
from tamis.replay.manifests import put
from tamis.spark.runtime.error_text import error_text
from tamis.spark.stream.stream import Stream, StreamJob, check_written, first_event, only_stream
from tamis.store import Log, Versions, subscribe
from tamis.store.version import describe

SCHEMA = {"attributes": {"n": "integer"}, "event_types": {"event": {"n": "mandatory"}}}
_CALL = "<_Rendezvous of RPC that terminated with:"
_TRACE = "Traceback (most recent call last):"


@pytest.fixture
def job(tmp_path: Path) -> StreamJob:
    """A job over an empty log."""
    Log.create(tmp_path / "log", SCHEMA)
    out = tmp_path / "out"
    return StreamJob(tmp_path / "log", tmp_path / "index", out, out / "checkpoint")


def test_one_stream_writes_to_a_folder(job: StreamJob, tmp_path: Path) -> None:
    with Stream(job) as stream:
        assert not stream.running
        with pytest.raises(SparkError, match="a stream is writing here already"):
            Stream(job)
        with pytest.raises(SparkError, match="open it first"):
            stream.start()
        stream.stop()
        with only_stream(job.out):
            pass
    nothing = replace(job, log=tmp_path / "nowhere", out=tmp_path / "other")
    with pytest.raises(StoreError, match="is not a log"):
        Stream(nothing)
    assert not (tmp_path / "other").exists()


def test_a_new_stream_begins_at_the_first_event(job: StreamJob) -> None:
    log = Log.open(job.log)
    assert first_event(log) == 0
    log.change(subscribe(["a", "b"], ["n < 3", "n < 4"]))
    assert first_event(log) == 2
    log.publish(pa.table({"n": [1]}))
    log.publish(pa.table({"n": [2]}))
    assert first_event(log) == 2
    with Stream(job) as stream:
        assert stream.position == 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("[A] b\n\tat x.y", "[A] b"),
        (
            "An error occurred while calling o62.start.\n: java.lang.X: no\n\tat a",
            "java.lang.X: no",
        ),
        (f"x\n{_TRACE}\n  File\ntamis.errors.SparkError: no version\n\n\tat y", "no version"),
        (f"x\n{_TRACE}\n  b\nKeyError: 'a'", "KeyError: 'a'"),
        ("\n  An exception was thrown.\n[X] y", "An exception was thrown."),
        (
            f'{_CALL}\n\tstatus = StatusCode.INTERNAL\n\tdetails = "[A] b"\n\tdebug = "c"\n>',
            "[A] b",
        ),
        ("", "ValueError"),
        (
            f"x\n{_TRACE}\n  b\nModuleNotFoundError: No module named 'tamis.spark'",
            "the workers do not have tamis; install it…",
        ),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: tamis_notifications. Make",
            "the workers do not have tamis; install it…",
        ),
        (
            "Job aborted: Task 0 failed: java.io.IOException: No space left on device\n\tat a.b",
            "no space is left on the device where Spark has…",
        ),
        (
            f"x\n{_TRACE}\n  b\ntamis.errors.StoreError: a.parquet: No space left on device",
            "a.parquet: No space left on device",
        ),
    ],
)
def test_the_text_of_an_error_of_spark(error: str, text: str) -> None:
    found = error_text(ValueError(error))
    assert found.startswith(text.removesuffix("…"))
    assert found == text or text.endswith("…")


def test_the_keeper_ends_before_it_is_closed(job: StreamJob) -> None:
    """A turn under way could begin a compilation that nobody waits for."""
    alive: list[bool] = []
    with Stream(job) as stream:
        close = stream.keeper.close

        def closed() -> None:
            alive.append(stream._turning.is_alive())
            close()

        stream.keeper.close = closed  # type: ignore[method-assign]
        stream._turning.start()
    assert alive == [False]


def test_what_another_stream_has_written_is_not_written_again(job: StreamJob) -> None:
    with Stream(job) as stream:
        facts = {"query": "another", "batch": 0, "offsets": []}
        put(stream.job.out, "another-0000000000-x", facts, [])
        with pytest.raises(SparkError, match="notifications of another stream"):
            stream.open()


def test_a_checkpoint_has_one_folder(job: StreamJob, tmp_path: Path) -> None:
    """The second one would lack what the first one has; and two at once would share the rest."""
    checkpoint = tmp_path / "checkpoint"
    first = replace(job, checkpoint=checkpoint)
    second = replace(first, out=tmp_path / "other")
    with Stream(first):
        with pytest.raises(SparkError, match="checkpoint: a stream is using it already"):
            Stream(second)
        (checkpoint / "metadata").write_text('{"id": "one"}', encoding="utf-8")
        (checkpoint / "commits").mkdir()
        put(first.out, "one-0000000000-x", {"query": "one", "batch": 0, "offsets": []}, [])
    check_written(second.out, checkpoint)  # no batch is over
    (checkpoint / "commits" / "0").touch()
    check_written(first.out, checkpoint)
    with Stream(second) as stream, pytest.raises(SparkError, match="has written to another folder"):
        stream.open()


def test_what_cannot_be_read_is_refused_before_spark_starts(job: StreamJob, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with pytest.raises(SparkError, match="no attribute 'm'"):
        Stream(replace(job, columns=("m",)))
    with pytest.raises(SparkError, match="out: cannot be the checkpoint as well"):
        Stream(replace(job, checkpoint=tmp_path / "log" / ".." / "out"))
    index.touch()
    with pytest.raises(StoreError, match="index: cannot be read: Not a directory"):
        Stream(job)
    index.unlink()
    index.mkdir()
    with Stream(job):
        pass
    (index / "part-0.parquet").touch()
    with pytest.raises(SparkError, match=r"not a folder of compiled versions, it holds part-0"):
        Stream(job)
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["checkpoint", "lock"]
    with Versions(index).publish(0) as folder:
        describe(folder, sequence=0, schema=SCHEMA, ids="text", shards=[])
    with Stream(job):  # whatever else is there
        pass


def test_a_session_that_is_gone_can_be_stopped(job: StreamJob) -> None:
    """A signal to all processes of a group ends Java as well, which then answers nobody."""

    class Gone:
        def stop(self) -> None:
            raise ConnectionRefusedError(111, "Connection refused")

    with Stream(job) as stream:
        stream._session = Gone()  # type: ignore[assignment]
    with only_stream(job.out):  # it is not held any more
        pass
