"""Dialects: languages for conditions. Each turns text into a `Condition`."""

from tamis.language.dialects.registry import (
    NATIVE,
    DialectEntry,
    dialects,
    entry,
    read,
    register,
    translate,
)

__all__ = ["NATIVE", "DialectEntry", "dialects", "entry", "read", "register", "translate"]
