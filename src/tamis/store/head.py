"""The head: where a log ends, in a file separate from its segments.

The head holds the end of the log and the chain at the end. So readers notice that the last packs of
a log are missing, although the remaining packs are whole. Readers also need not search for the end.

The file has four slots, each with a checksum. Appends write the first two slots in turn. They do
not sync these slots, which would take a third of the time of an append. So a power cut may tear
both. Each new segment writes one of the other two slots, in turn, and syncs it. One of these always
survives. After a power cut the head may be too old. A head is trusted only if it was written since
the machine started. Otherwise the packs after it are found by reading the segments.
"""

from __future__ import annotations

import os
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest, xxh3_128_digest

CLEAN, APPENDING = 0, 1  # no append is under way; a pack may be written, whole or in part
_MAGIC = b"tamishd2"
_SLOT = 512  # bytes, a sector: a torn write damages one slot only
_SLOTS = 4
_FIELDS = struct.Struct("<8s16sQqqqqqq16s16s")
_SUM = struct.Struct("<Q")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Head(NamedTuple):
    """Where a log ends."""

    identity: bytes
    turn: int  # counts the writes
    state: int
    end: int  # the next sequence number
    segment: int  # the first sequence number of the last segment
    size: int  # bytes of the last segment
    packs: int  # packs of the last segment
    schema: int  # the number of the last schema record; -1: the log has no such record
    chain: bytes  # `chain_after` of the last pack
    boot: bytes  # identifies the start of the machine after which the head was written


@cache
def this_boot() -> bytes:
    """Identifies the current start of the machine; random if the system has no such id."""
    try:
        return xxh3_128_digest(_BOOT.read_bytes())
    except OSError:
        return os.urandom(16)


def write_head(opened: int, head: Head) -> None:
    """Write a head into the slot of its turn, without a sync."""
    _write(opened, head, head.turn % 2)


def anchor_head(opened: int, head: Head) -> None:
    """Write and sync a head that later writes without a sync cannot damage."""
    slots = _slots(opened, head.identity)
    older = min((2, 3), key=lambda at: -1 if (slot := slots[at]) is None else slot.turn)
    _write(opened, head, older)
    os.fdatasync(opened)


def create_head(path: Path, head: Head) -> None:
    """Write a new file with a head and sync it. The folder is not synced."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        os.pwrite(opened, bytes(_SLOTS * _SLOT), 0)
        for slot in range(_SLOTS):
            _write(opened, head, slot)
        os.fsync(opened)
    finally:
        os.close(opened)


def _write(opened: int, head: Head, slot: int) -> None:
    fields = _FIELDS.pack(_MAGIC, *head)
    os.pwrite(opened, fields + _SUM.pack(xxh3_64_intdigest(fields)), _SLOT * slot)


def read_head(opened: int, identity: bytes) -> Head | None:
    """The newest head in a file; None if no slot has a head of this log.

    If a slot that appends write is damaged, it may have held a newer head. So this one is marked
    like a head from before the machine started: readers look for packs after it.
    """
    slots = _slots(opened, identity)
    newest = max((slot for slot in slots if slot), key=lambda each: each.turn, default=None)
    if newest is not None and None in slots[:2]:
        return newest._replace(boot=bytes(len(newest.boot)))
    return newest


def is_whole(opened: int, identity: bytes) -> bool:
    """Whether all slots of a file have a head of this log, and nothing else is there."""
    return os.fstat(opened).st_size == _SLOTS * _SLOT and None not in _slots(opened, identity)


def _slots(opened: int, identity: bytes) -> list[Head | None]:
    data = os.pread(opened, _SLOTS * _SLOT, 0)
    return [_slot(data[at : at + _SLOT], identity) for at in range(0, _SLOTS * _SLOT, _SLOT)]


def _slot(data: bytes, identity: bytes) -> Head | None:
    size = _FIELDS.size
    if len(data) < size + _SUM.size or any(data[size + _SUM.size :]):
        return None
    if _SUM.unpack_from(data, size)[0] != xxh3_64_intdigest(data[:size]):
        return None
    magic, *fields = _FIELDS.unpack_from(data)
    head = Head._make(fields)
    return head if magic == _MAGIC and head.identity == identity else None
