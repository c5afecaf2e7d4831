"""The head: where a log ends, in a file apart from its segments.

It says how far the log reaches, and the chain there. So a log that lost its last packs is noticed,
although those that are left are whole. It also spares everybody a search for the end.

The file has four slots, each with a checksum. Appends write the first two in turns, and do not sync
them, which would cost a third of an append's time. So a power cut may tear both. Each new segment
writes one of the other two, in turns, and syncs it: one of these always stays. After a power cut
the head may be too old. Then the packs after it are found by reading the segments, because a head
is only trusted if it was written since the machine started.
"""

from __future__ import annotations

import os
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_64_intdigest, xxh3_128_digest

CLEAN, APPENDING = 0, 1  # states: nothing is under way; a pack may be in its place, or a part
_MAGIC = b"tamishd2"
_SLOT = 512  # bytes, a sector: so the slots tear apart from each other
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
    schema: int  # the number of the last schema record; -1: there is none
    chain: bytes  # `chain_after` of the last pack
    boot: bytes  # the start of the machine since which it was written


@cache
def this_boot() -> bytes:
    """A mark of the current start of the machine; random where the system has none."""
    try:
        return xxh3_128_digest(_BOOT.read_bytes())
    except OSError:
        return os.urandom(16)


def write_head(opened: int, head: Head) -> None:
    """Write a head into the slot of its turn. It is not on disk yet."""
    _write(opened, head, head.turn % 2)


def anchor_head(opened: int, head: Head) -> None:
    """Write a head that stays on disk whatever is written later without a sync."""
    slots = _slots(opened, head.identity)
    older = min((2, 3), key=lambda at: -1 if (slot := slots[at]) is None else slot.turn)
    _write(opened, head, older)
    os.fdatasync(opened)


def create_head(path: Path, head: Head) -> None:
    """Write a new file with a head, on disk. Its name is not."""
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
    """The newest head in a file; None if no slot has one of this log."""
    found = [slot for slot in _slots(opened, identity) if slot is not None]
    return max(found, key=lambda each: each.turn, default=None)


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
