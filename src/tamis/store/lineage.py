"""Which log a version was compiled from: sequence numbers of another log mean nothing in it."""

from __future__ import annotations

from tamis.errors import StoreError
from tamis.store.log import Log
from tamis.store.versions import Versions

OF = "of"  # in what a version notes of how it was made: the identity of its log


def check_log(versions: Versions, log: Log) -> None:
    """Refuse versions of another log. What does not say of which it is, is taken for one of this.

    That is so of conditions that were compiled without a log, which go with any.
    """
    latest = versions.latest()
    of = None if latest is None else latest.made.get(OF)
    if of is not None and log.identity is not None and of != log.identity:
        raise StoreError(
            f"{versions.folder}: was compiled from another log than {log.folder}, or from one that "
            "was made anew since; name another folder for the index of this one"
        )
