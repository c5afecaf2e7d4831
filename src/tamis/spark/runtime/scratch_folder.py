"""Folders that live as long as a job; those of killed jobs are removed later."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tamis.files.lock import locked
from tamis.files.sync import make_folder

_SCRATCH, _HELD = ".tamis-", "lock"  # a folder, and the lock in it that the job holds


@contextmanager
def scratch_folder(out: Path | None) -> Iterator[Path]:
    """A folder that lives as long as a job, where results go: all workers see that place.

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
            if (above / _HELD).exists():  # or it was removed as a leftover before it was locked
                break
        yield above


def scratch_folders(folder: Path) -> list[Path]:
    """The scratch folders of all jobs here."""
    return sorted(folder.glob(f"{_SCRATCH}*"))


def _sweep_scratch(folder: Path) -> None:
    for left in folder.glob(f"{_SCRATCH}*"):
        # A folder without a lock may be new; that of another user may not be readable.
        with suppress(OSError):
            if (left / _HELD).is_file():
                with locked(left / _HELD, wait=False):
                    shutil.rmtree(left, ignore_errors=True)
