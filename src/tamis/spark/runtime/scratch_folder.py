"""Folders for the time of a job, which are gone afterwards, even where the job was killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tamis.files.lock import locked
from tamis.files.sync import make_folder

_SCRATCH, _HELD = ".tamis-", "lock"  # a folder for a job, and what is locked in it while it runs


@contextmanager
def scratch(out: Path | None) -> Iterator[Path]:
    """A folder for the time of a job. Workers have to see it: where results go, they all can.

    A lock in it says that the job is alive. Folders of jobs that were killed are removed.
    """
    if out is not None:
        make_folder(out)
    _sweep_scratch(Path(tempfile.gettempdir()) if out is None else out)
    with ExitStack() as held:
        while True:
            above = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=out))
            held.callback(shutil.rmtree, above, ignore_errors=True)
            held.enter_context(locked(above / _HELD))
            if (above / _HELD).exists():  # or somebody took it for left over before it was locked
                break
        yield above


def others(folder: Path) -> list[Path]:
    """The folders of all jobs that have one here."""
    return sorted(folder.glob(f"{_SCRATCH}*"))


def _sweep_scratch(folder: Path) -> None:
    for left in folder.glob(f"{_SCRATCH}*"):
        # Where there is no lock yet somebody may be about to make one; others' are not to be read.
        with suppress(OSError):
            if (left / _HELD).is_file():
                with locked(left / _HELD, wait=False):
                    shutil.rmtree(left, ignore_errors=True)
