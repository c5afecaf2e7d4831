"""Arrow data from outside, damaged in any way: refused or matched, never a crash or a raw error."""

from __future__ import annotations

import os
import random

import numpy as np
import pyarrow as pa
import pytest

from tamis.engine import Engine
from tamis.errors import EventError, TamisError
from tamis.model.schema import Schema

TRIED = int(os.environ.get("TAMIS_FUZZED", "1500"))


@pytest.fixture
def engine() -> Engine:
    engine = Engine(
        Schema.from_dict(
            {
                "attributes": {
                    "price": "decimal",
                    "number": "integer",
                    "name": "text",
                    "tags": "text",
                    "open": "boolean",
                },
                "event_types": {
                    "offer": {
                        "price": "optional",
                        "number": "optional",
                        "name": "optional",
                        "tags": "optional multiple",
                        "open": "optional",
                    }
                },
            }
        )
    )
    engine.subscribe('price < 5 or name starts with "a" or tags = oak or number > 2', id="a")
    return engine


def _tables() -> list[pa.Table]:
    texts = ["a chair", None, "b", "", "äöü"]
    lists = [["oak", "pine"], [], None, ["x"], ["oak", None]]
    plain = pa.table(
        {
            "price": pa.array([1.0, None, 3.5, -1.0, 9.0]),
            "number": pa.array([1, 2, None, 4, 5], pa.int32()),
            "name": pa.array(texts),
            "tags": pa.array(lists, pa.list_(pa.string())),
            "open": pa.array([True, None, False, True, True]),
        }
    )
    odd = pa.table(
        {
            "price": pa.array([1, 2, None, 4, 5], pa.decimal128(10, 2)),
            "name": pa.array(texts).dictionary_encode(),
            "tags": pa.array(lists, pa.large_list(pa.large_string())),
            "number": pa.array([1, 2, None, 4, 5], pa.uint64()),
        }
    )
    views = pa.table(
        {"name": pa.array(texts, pa.string_view()), "price": pa.array([1.0] * 5, pa.float32())}
    )
    return [plain, odd, views]


def _damaged(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(len(changed))
        changed[at] = draw.choice((changed[at] ^ 1 << draw.randrange(8), 0, 255, 127))
    return bytes(changed)


def test_damaged_tables_are_refused_or_matched(engine: Engine) -> None:
    draw = random.Random(TRIED)
    files = []
    for table in _tables():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        files.append(sink.getvalue().to_pybytes())
        assert len(engine.match_batch(table)) == 5
    refused = matched = 0
    for _ in range(TRIED):
        try:
            table = pa.ipc.open_file(pa.py_buffer(_damaged(draw.choice(files), draw))).read_all()
        except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError):
            continue  # Arrow itself noticed
        if table.num_rows > 1000:
            continue
        try:
            engine.match_batch(table)
            matched += 1
        except TamisError:
            refused += 1
    assert refused
    assert matched


def test_offsets_that_lead_out_of_the_buffer(engine: Engine) -> None:
    for middle in (10_000_000, -4, 2**31 - 1):  # Arrow itself looks at the first and the last
        offsets = np.array([0, middle, 3], np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
        texts = pa.Array.from_buffers(pa.string(), 2, buffers)
        with pytest.raises(EventError, match="the table is damaged"):
            engine.match_batch(pa.table({"name": texts}))


def test_codes_outside_their_dictionary(engine: Engine) -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a", "b"]), safe=False)
    with pytest.raises(EventError, match="the table is damaged"):
        engine.match_batch(pa.table({"name": codes}))
