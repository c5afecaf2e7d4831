"""What the operating system refuses, as an error of tamis that says what was tried."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import TamisError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UnsyncedError(OSError):
    """A file or folder that is in place, but may not survive a power cut."""


@contextmanager
def os_errors_as(error: type[TamisError], what: str, *, unchanged: bool = True) -> Iterator[None]:
    """Raise `error` for an `OSError` in the block. `what` names the path and what was tried.

    Pass `unchanged=False` if the block may leave something behind: the text then does not promise
    that nothing was changed.
    """
    try:
        yield
    except UnsyncedError as why:
        raise error(
            f"{what}: {why.strerror}; {why.filename} is in place, but a power cut may undo that"
        ) from why
    except OSError as why:
        full = unchanged and why.errno in _FULL
        hint = "; nothing was changed, make room and try again" if full else ""
        raise error(f"{what}: {why.strerror or why}{hint}") from why


def is_full(error: Exception) -> bool:
    """Whether a write was refused since the disk is full. A failed sync is something else."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return (
        isinstance(cause, OSError)
        and not isinstance(cause, UnsyncedError)
        and cause.errno in (errno.ENOSPC, errno.EDQUOT)
    )
