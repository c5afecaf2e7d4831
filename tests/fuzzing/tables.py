"""Arrow tables of every type, whole and damaged."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS = 5
_pa: Any = pa  # with the classes that have no types
_TEXTS = ["a chair", None, "oak", "", "äöü"]
_MOMENTS = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(ROWS)]
_NUMBERS = [1, 2, None, 4, 5]
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError, TypeError)


def _leaves() -> list[pa.Array]:
    """An array of every plain type."""
    numbers: Iterable[pa.DataType] = (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
        pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2),
        pa.decimal256(60, 3), _pa.decimal32(5, 1), _pa.decimal64(12, 0), pa.date32(), pa.date64(),
        pa.time32("s"), pa.time64("ns"), pa.duration("us"), pa.timestamp("s"), pa.timestamp("ns"),
    )  # fmt: skip
    texts = (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.binary_view(),
    )  # fmt: skip
    found = [pa.array([None if n is None else _as(n, kind) for n in _NUMBERS], kind)
             for kind in numbers]  # fmt: skip
    found += [pa.array(_TEXTS, kind) for kind in texts]
    zones = ("UTC", "Europe/Paris", "+05:30", "Mars/Phobos", "")
    found += [pa.array(_MOMENTS, pa.timestamp("us", "UTC")).view(pa.timestamp("us", zone))
              for zone in zones]  # fmt: skip
    found += [
        pa.array([True, None, False, True, True]),
        pa.nulls(ROWS),
        pa.array([b"abc", None, b"xyz", b"\xff\xff\xff", b"   "], pa.binary(3)),
        pa.array([b""] * ROWS, pa.binary(0)),
        pa.array([(1, 2, 3)] * ROWS, _pa.month_day_nano_interval()),
        pa.array([1e300, float("nan"), float("inf"), -0.0, None]),
        pa.array([2**63, 2**64 - 1, 0, None, 5], pa.uint64()),
        pa.array([-(2**63), 2**63 - 1, 0, None, 5]),
        pa.array(["red", "blue", None, "green", "pink"]),
        pa.array(["offer", "bid", None, "", "offer"]),
        pa.array(["2026-01-01T00:00:00Z", "x", None, "2026-02-30", "2026-01-01"]),
        pa.array(['{"price": 1}', "{", "[]", None, '{"price": "x"}']),
        pa.array([b"\xff\xfe", b"a", None, b"", b"\xc3"], pa.binary()).view(pa.string()),
    ]
    return found


def _as(number: int, kind: pa.DataType) -> Any:
    return Decimal(number) if pa.types.is_decimal(kind) else number


def _offsets(step: int) -> pa.Array:
    return pa.array([0, step, step, 2 * step, 2 * step, 5], pa.int32())


def _union(array: pa.Array, mode: str) -> Any:
    kinds = pa.array([0, 1, 0, 1, 0], pa.int8())
    other = pa.array(range(ROWS))
    if mode == "sparse":
        return _pa.UnionArray.from_sparse(kinds, [array, other])
    return _pa.UnionArray.from_dense(kinds, pa.array([0, 1, 2, 3, 4], pa.int32()), [array, other])


def _extension(array: pa.Array) -> Any:
    kinds: dict[pa.DataType, pa.DataType] = {pa.string(): _pa.json_(), pa.int8(): _pa.bool8()}
    kind = kinds.get(array.type) or _pa.opaque(array.type, "odd", "somebody")
    return _pa.ExtensionArray.from_storage(kind, array)


FORMS: list[Callable[[pa.Array], pa.Array]] = [
    lambda array: array,
    lambda array: array,
    lambda array: array.slice(1).take(pa.array([0, 1, None, 2, 3])),
    lambda array: pa.concat_arrays([array, array]).slice(3, ROWS),
    lambda array: pa.ListArray.from_arrays(_offsets(2), array),
    lambda array: _pa.ListArray.from_arrays(_offsets(2), array, mask=_mask()),
    lambda array: pa.LargeListArray.from_arrays(_offsets(1).cast(pa.int64()), array),
    lambda array: pa.FixedSizeListArray.from_arrays(pa.concat_arrays([array, array]), 2),
    lambda array: pa.Array.from_buffers(
        pa.list_(array.type, 0), ROWS, [None], children=[array.slice(0, 0)]
    ),
    lambda array: _pa.ListViewArray.from_arrays(
        pa.array([4, 0, 1, 2, 0], pa.int32()), pa.array([1, 2, 0, 3, 5], pa.int32()), array
    ),
    lambda array: _pa.LargeListViewArray.from_arrays(
        pa.array([4, 0, 1, 2, 0]), pa.array([1, 2, 0, 3, 5]), array
    ),
    lambda array: pa.StructArray.from_arrays([array, array], names=["inner", "x"]),
    lambda array: pa.StructArray.from_arrays([array], names=["inner"], mask=_mask()),
    lambda array: _pa.MapArray.from_arrays(_offsets(2), pa.array(list("abcde")), array),
    lambda array: array.dictionary_encode(),
    lambda array: pa.DictionaryArray.from_arrays(pa.array([0, 4, None, 1, 1], pa.int8()), array),
    pc.run_end_encode,
    lambda array: _pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4, 5], pa.int16()), array),
    lambda array: _union(array, "sparse"),
    lambda array: _union(array, "dense"),
    _extension,
]


def _mask() -> pa.Array:
    return pa.array([False, True, False, False, True])


def columns(draw: random.Random, many: int = 400) -> list[pa.Array]:
    """Columns of every type, and of types within types."""
    found = _leaves()
    while len(found) < many:
        try:
            made = draw.choice(FORMS)(draw.choice(found))
            if len(made) == ROWS:
                made.validate()
                found.append(made)
        except _UNREADABLE:
            continue  # there is no such type
    return found


def any_table(draw: random.Random, pool: list[pa.Array], names: list[str]) -> pa.Table:
    """A table of some columns."""
    many = draw.choice((0, 1, 1, 1, 2, 3, 5))
    chosen = draw.sample(names, many) if draw.random() < 0.95 else draw.choices(names, k=many)
    arrays = [draw.choice(pool) for _ in range(many)]
    way = draw.randrange(20)
    if way == 0:
        return pa.Table.from_arrays([pa.chunked_array([], each.type) for each in arrays], chosen)
    if way == 1:
        return pa.Table.from_arrays([pa.chunked_array([each] * 2) for each in arrays], chosen)
    table = pa.Table.from_arrays(arrays, chosen)
    return table.slice(draw.randrange(ROWS), draw.randrange(ROWS)) if way < 5 else table


class Streams:
    """Tables as bytes of Arrow's formats, to be damaged."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._found: list[tuple[bytes, int, bool]] = []  # bytes, where the body begins, a file
        for table in tables:
            for whole in (False, True):
                sink = pa.BufferOutputStream()
                opened = pa.ipc.new_file if whole else pa.ipc.new_stream
                try:
                    with opened(sink, table.schema) as writer:
                        writer.write_table(table)
                except _UNREADABLE:
                    continue
                data = sink.getvalue().to_pybytes()
                self._found.append((data, self._body(data, whole), whole))

    @staticmethod
    def _body(data: bytes, whole: bool) -> int:
        if whole:
            return len(data) // 3
        sizes = [message.body.size for message in _pa.ipc.MessageReader.open_stream(data)]
        return len(data) - 8 - sizes[-1] if sizes else 0

    def data(self, draw: random.Random) -> bytes:
        """The bytes of a damaged stream or file."""
        return self._drawn(draw)[0]

    def table(self, draw: random.Random) -> pa.Table:
        """A damaged table that Arrow itself reads."""
        while True:
            data, whole = self._drawn(draw)
            try:
                opened = pa.ipc.open_file if whole else pa.ipc.open_stream
                return opened(pa.py_buffer(data)).read_all()
            except _UNREADABLE:
                continue

    def _drawn(self, draw: random.Random) -> tuple[bytes, bool]:
        data, body, whole = draw.choice(self._found)
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 8))):
            low = body if draw.random() < 0.9 and body < len(changed) else 0
            _damage(changed, draw.randrange(low, len(changed)), draw)
        return bytes(changed), whole


def _damage(data: bytearray, at: int, draw: random.Random) -> None:
    way = draw.randrange(4)
    if way == 0:
        data[at] ^= 1 << draw.randrange(8)
    elif way == 1:
        data[at] = draw.choice((0, 1, 127, 128, 255))
    else:  # a number at its place, such as an offset
        size, form = ((4, "<i"), (8, "<q"))[way - 2]
        at = min(at - at % size, len(data) - size)
        number = draw.choice((-1, 0, 1, 3, 6, 100, 2**20, 2**31 - 1, -(2**31)))
        data[at : at + size] = struct.pack(form, number)


def handmade(draw: random.Random) -> pa.Array:
    """An array over buffers that are too short, missing or full of anything."""
    kind = draw.choice(
        (pa.string(), pa.large_string(), pa.int64(), pa.bool_(), pa.string_view(), pa.float64())
    )
    rows = draw.choice((1, ROWS, 100))
    buffers: list[pa.Buffer | None] = []
    for at in range(3 if kind in (pa.string(), pa.large_string()) else 2):
        sized = draw.choice((0, 1, 8, 16 * rows + 16))
        numbers = np.frombuffer(draw.randbytes(sized), np.uint8).copy()
        if draw.random() < 0.5:
            numbers[draw.randrange(sized + 1) :] = 0
        buffers.append(None if not at and draw.random() < 0.7 else pa.py_buffer(numbers))
    try:
        return pa.Array.from_buffers(kind, rows, buffers)
    except _UNREADABLE:
        return handmade(draw)  # Arrow itself noticed
