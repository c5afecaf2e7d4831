"""Regular expressions of RE2, whose time is linear in the text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.model.domain import RefusalError

if TYPE_CHECKING:
    import re2

LARGEST = 1000
"""Instructions of a compiled pattern. RE2 runs each at most once per character. Even so, a megabyte
of text takes seconds, and minutes with patterns ten times as large."""
_MEMORY = 1 << 20
"""Bytes that a compiled pattern may take while it matches, which RE2 fills with states. Its default
is eight times as much, and hostile patterns are slower with it, not faster."""
_SHOWN = 80  # characters of a pattern in a message


@lru_cache(maxsize=4096)
def regular_expression(pattern: str) -> re2._Regexp:
    """A compiled pattern; a `RefusalError` for one that is not valid or too large."""
    try:
        import re2
    except ImportError:
        raise RefusalError(
            "regular expressions need the package google-re2: pip install 'tamis[text]'"
        ) from None
    options = re2.Options()
    options.log_errors = False  # they are raised
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise RefusalError(
            f"pattern {pattern!r:.{_SHOWN}} is not valid in RE2: {reason} "
            "(RE2 has no backreferences and no look-around)"
        ) from None
    if compiled.programsize > LARGEST:
        raise RefusalError(
            f"pattern {pattern!r:.{_SHOWN}} is too large: {compiled.programsize} instructions, "
            f"at most {LARGEST}; repeat less, {{0,1000}} copies its part a thousand times"
        )
    return compiled
