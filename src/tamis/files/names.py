"""Names in a folder, and names that stay within it.

A name that comes from a file or from a user may be `../../etc/passwd`. It passes through
`plain_name` or `chosen_name` before it becomes a part of a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tamis.errors import TamisError

_LONGEST = 255  # bytes, the most that file systems take
_CHOSEN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def names_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder."""
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def own_files(folder: Path, pattern: str) -> list[Path]:
    """Return what matches in a folder and may be deleted there: nothing if the folder is a link.

    A link may lead anywhere. What it leads to belongs to someone else.
    """
    return [] if folder.is_symlink() else sorted(folder.glob(pattern))


def plain_name(name: Any, what: str, error: type[TamisError]) -> str:
    """Return `name` if it is one plain component of a path; raise `error` otherwise.

    For names that are read from a file. `what` says where the name stands and what it names.
    Hidden names are refused too: unfinished files have them.

    >>> plain_name("shard-0000", "version.json: the shard", TamisError)
    'shard-0000'
    >>> plain_name("../other", "version.json: the shard", TamisError)
    Traceback (most recent call last):
    tamis.errors.TamisError: version.json: the shard is named '../other'; a name here is text \
without '/', '\\' or control characters, and does not begin with '.'
    """
    if isinstance(name, str) and not name.startswith(".") and name.isprintable():
        try:
            if 0 < len(name.encode()) <= _LONGEST and not {"/", "\\"} & {*name}:
                return name
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write
            pass
    shown = repr(name) if len(repr(name)) <= _LONGEST else f"{repr(name)[:_LONGEST]}…"
    raise error(
        f"{what} is named {shown}; a name here is text without '/', '\\' or control characters, "
        "and does not begin with '.'"
    )


def chosen_name(name: str, what: str, error: type[TamisError]) -> str:
    """Return `name` if it can be a part of a file name anywhere; raise `error` otherwise.

    For names that users choose, such as that of a reader.
    """
    if _CHOSEN.fullmatch(name):
        return name
    raise error(
        f"{what} is named {name!r}; a name has 1 to 100 letters, digits, '.', '-' or '_', and "
        "does not begin with '.'"
    )
