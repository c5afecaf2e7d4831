"""Checks of a stream before Spark is started, which takes a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tamis.errors import SparkError, StoreError
from tamis.files.lock import locked
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as
from tamis.replay.manifests import manifests
from tamis.spark.stream.log_source import LogOptions
from tamis.spark.stream.progress import query_of
from tamis.store.versions import Versions

_OF_AN_INDEX = re.compile(r"v\d{20}|readers|jobs|pins|lock|lost\+found|\..*")


def check_read(log: Path, index: Path, columns: tuple[str, ...]) -> None:
    """Refuse attributes that events do not have, and a folder that is not an index."""
    LogOptions.read({"path": str(log), "index": str(index), "columns": ",".join(columns)})
    if Versions(index).latest() is None and index.exists():
        strange = sorted(name for name in names_in(index) if not _OF_AN_INDEX.fullmatch(name))
        if strange:
            listed = ", ".join(strange[:5]) + (", …" if len(strange) > 5 else "")
            raise SparkError(
                f"{index}: is not a folder of compiled versions, it holds {listed}; name "
                "another one, or one that is empty or does not exist yet"
            )


def check_apart(out: Path, checkpoint: Path) -> None:
    """Refuse one folder for both."""
    if out.resolve() == checkpoint.resolve():
        raise SparkError(f"{out}: cannot be the checkpoint as well; name another folder for that")


def check_written(out: Path, checkpoint: Path) -> None:
    """Refuse a folder and a checkpoint that do not belong together.

    If another query has written to the folder, this one would start over, and all notifications
    would come twice. If the query of the checkpoint has written to another folder, this one would
    lack those notifications.
    """
    mine = query_of(checkpoint)
    queries = {each.get("query") for each in manifests(out)} - {None}
    if mine in queries:
        return
    if queries:
        raise SparkError(
            f"{out}: holds notifications of another stream than that of the checkpoint "
            f"{checkpoint}, which would write them again; name another folder to write to, or the "
            "checkpoint of that stream"
        )
    if mine is not None and any((checkpoint / "commits").glob("[0-9]*")):
        raise SparkError(
            f"{checkpoint}: is the checkpoint of a stream that has written to another folder than "
            f"{out}, which would lack all that came before; name that folder, or another "
            "checkpoint to begin from the start"
        )


@contextmanager
def only_stream(folder: Path, what: str = "writing here") -> Iterator[None]:
    """Lock a folder against a second stream."""
    with os_errors_as(StoreError, f"{folder}: cannot be written to"):
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            try:
                held.enter_context(locked(folder / "lock", wait=False))
            except BlockingIOError:
                raise SparkError(
                    f"{folder}: a stream is {what} already; stop it, or choose another folder"
                ) from None
            yield
