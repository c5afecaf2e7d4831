"""Open forged indexes: facts, arrays and tables that were rewritten, with right checksums.

They are tried in a process of its own, because a kernel that trusts a forged offset ends it. It
prints the number of each trial before the trial, and a line for each one that went wrong.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.engine import Engine
from tamis.errors import ConditionError, TamisError
from tamis.files.array_folder import Saved, read, write
from tamis.files.checksum import SectionWriter
from tamis.testing import cases, operator_cases
from tamis.testing.engine_checks import subscribe_random

_MEMORY = 6 << 30  # bytes of address space: a forged size must not be allocated
_SECONDS = 60  # a trial that takes longer hangs
_EVENTS = 12
_NUMBERS = (-1, 0, 1, 7, -(2**63), 2**63 - 1, 2**60, 2**31, -(2**31) - 1, 2**200)
_VALUES: tuple[Any, ...] = (*_NUMBERS, 1.5, "x", "", None, True, [], {}, [[[]]], {"x": 1}, ["x"])
_WORDS = (-1, 0, 1, 2, 63, 2**24 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**60, 2**63 - 1, -(2**63))


Change = Callable[[NDArray[Any]], NDArray[Any]]


class Forgery(NamedTuple):
    """A change to a saved index: to its facts, an array or a blob."""

    name: str
    facts: Callable[[dict[str, Any]], object] = lambda facts: None
    array: tuple[str, Change | None] | None = None  # None: the array is missing
    blob: tuple[str, bytes | None] | None = None


# -- what is forged --------------------------------------------------------------------------------


def forgeries(saved: Saved, chance: random.Random) -> Iterator[Forgery]:
    """Changes to each fact, array and table, in a fixed order for a seed."""
    for path in _paths(saved.facts):
        for value in _VALUES:
            yield Forgery(f"fact {path} = {value!r}", _setting(path, value))
        yield Forgery(f"fact {path} deep", _setting(path, _deep(800)))
        yield Forgery(f"fact {path} gone", _setting(path, ...))
    for name, array in saved.arrays.items():
        for what, change in _array_changes(array, chance):
            yield Forgery(f"array {name} {what}", array=(name, change))
        yield Forgery(f"array {name} gone", array=(name, None))
    for name, found in saved.blobs.items():
        blob = bytes(found)
        for _ in range(12):
            at, bit = chance.randrange(len(blob)), 1 << chance.randrange(8)
            flipped = blob[:at] + bytes([blob[at] ^ bit]) + blob[at + 1 :]
            yield Forgery(f"blob {name} byte {at} ^ {bit}", blob=(name, flipped))
        for what, table in _tables(blob):
            yield Forgery(f"blob {name} {what}", blob=(name, table))
        yield Forgery(f"blob {name} gone", blob=(name, None))


def _array_changes(array: NDArray[Any], chance: random.Random) -> Iterator[tuple[str, Change]]:
    for kind in ("int8", "int32", "int64", "uint64", "float64", "bool"):
        if array.dtype != kind:
            yield kind, partial(np.asarray, dtype=kind)
    yield "empty", lambda a: a[:0]
    yield "half", lambda a: a[: len(a) // 2]
    yield "short", lambda a: a[:-1]
    yield "long", lambda a: np.concatenate([a, a[:1]])
    yield "longer", lambda a: np.concatenate([a, np.zeros((4097, *a.shape[1:]), a.dtype)])
    yield "twice", lambda a: np.concatenate([a, a])
    yield "reversed", lambda a: a[::-1].copy()
    yield "deep", lambda a: a.reshape(*a.shape, 1)
    yield "flat", lambda a: a.reshape(-1)
    for word in _WORDS:
        yield f"all {word}", partial(_filled, where=None, word=word)
        for _ in range(3):
            at = chance.random()
            yield f"{at:.3f} {word}", partial(_filled, where=at, word=word)
    for _ in range(8):
        at, bit = chance.random(), chance.randrange(64)
        yield f"{at:.3f} ^ 2^{bit}", partial(_flipped, at=at, bit=bit)


def _filled(array: NDArray[Any], where: float | None, word: int) -> NDArray[Any]:
    flat = array.reshape(-1)
    at = slice(None) if where is None else slice(int(where * flat.size), int(where * flat.size) + 1)
    if array.dtype.kind == "f":
        flat[at] = np.float64(word) if word != 63 else np.nan
    else:
        flat[at] = np.array([word & (2**64 - 1)], np.uint64).astype(array.dtype)[0]
    return array


def _flipped(array: NDArray[Any], at: float, bit: int) -> NDArray[Any]:
    flat = array.reshape(-1).view(np.uint8)
    if flat.size:
        item = array.dtype.itemsize
        flat[int(at * array.size) * item + bit // 8 % item] ^= 1 << bit % 8
    return array


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner: Any = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else inner:
        yield from _paths(each, (*path, key))


def _setting(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], object]:
    def apply(facts: dict[str, Any]) -> None:
        inner: Any = facts
        for key in path[:-1]:
            inner = inner[key]
        if value is ...:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value

    return apply


def _deep(levels: int) -> Any:
    found: Any = 0
    for _ in range(levels):
        found = [found]
    return found


def _tables(blob: bytes) -> Iterator[tuple[str, bytes]]:
    """The table with fewer rows, other types, other names, and without validity."""
    table = pa.ipc.open_file(pa.py_buffer(blob)).read_all()
    column, name = table.column(0), table.column_names[0]
    yield "no rows", _bytes(table.slice(0, 0))
    yield "fewer rows", _bytes(table.slice(0, max(0, len(table) - 1)))
    yield "more rows", _bytes(pa.concat_tables([table, table]))
    yield "nulls", _bytes(pa.table({name: pa.nulls(len(table), column.type)}))
    yield "numbers", _bytes(pa.table({name: pa.array(range(len(table)))}))
    yield "bytes", _bytes(pa.table({name: pa.array([b"\xff"] * len(table))}))
    yield "renamed", _bytes(table.rename_columns(["x", *table.column_names[1:]]))
    yield "texts", _bytes(pa.table({name: pa.array(["]"] * len(table), pa.large_string())}))
    if pa.types.is_large_string(column.type) and len(table) > 1:  # Arrow checks both ends itself
        chunk = column.combine_chunks()
        chunk = chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk
        valid, offsets, data = chunk.buffers()
        for what, word in (("far", 2**40), ("negative", -5)):
            forged = np.frombuffer(bytes(offsets or b""), np.int64).copy()
            forged[len(table) // 2] = word
            buffers = [valid, pa.py_buffer(forged), data]
            made = pa.Array.from_buffers(pa.large_string(), len(table), buffers)
            yield f"{what} offset", _bytes(pa.table({name: made}))


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


# -- what is done with it --------------------------------------------------------------------------


def made(folder: Path, name: str, options: dict[str, Any]) -> None:
    """Save an engine with subscriptions of every kind, after some have gone."""
    chooser = cases.RandomChooser(5)
    engine = Engine(cases.SCHEMA, name, **options)
    live = subscribe_random(engine, chooser, 150)
    texts = ['title like "%b%" or tags like "_a%"', "title = abc", 'title ends with "b"']
    for at, text in enumerate(texts):
        engine.subscribe(text, id=f"text {at}")
    engine.subscribe_table(
        pa.table(
            {"id": [5000 + i for i in range(40)], "condition": ["price < 3 or small = 2"] * 40}
        )
    )
    engine.match_batch([cases.event(chooser) for _ in range(80)])
    for id in list(live)[::3]:
        engine.unsubscribe(id)
    engine.match_batch([cases.event(chooser) for _ in range(80)])
    engine.save(folder)


def with_calls(folder: Path) -> None:
    """Save an engine whose conditions call operators."""
    chance = random.Random(3)
    engine = Engine(operator_cases.SCHEMA, "naive", operators=operator_cases.OPERATORS)
    for _ in range(20):
        with suppress(ConditionError):  # some can never be true
            engine.subscribe(operator_cases.condition(chance))
    engine.save(folder)


def used(folder: Path, calls: bool) -> None:
    """Open an index, match, change it, and match again."""
    engine = Engine.open(folder, operators=operator_cases.OPERATORS if calls else ())
    chooser, chance = cases.RandomChooser(9), random.Random(4)
    events = [
        operator_cases.event(chance) if calls else cases.event(chooser) for _ in range(_EVENTS)
    ]
    for _ in range(2):
        list(engine.match_batch(events))
        engine.match_bitmap(events)
        engine.match(events[0])
        ids = engine.ids()
        for id in ids[:: max(1, len(ids) // 8)]:
            engine.condition(id)
            engine.unsubscribe(id)
        for text in () if calls else ('title like "%bc"', "title = zz", "price < 2", "number = 3"):
            engine.subscribe(text)
    for id in engine.ids():
        engine.unsubscribe(id)


def rewrite(folder: Path, saved: Saved, forgery: Forgery) -> None:
    """Write a saved index again, forged, with right checksums."""
    facts, arrays = json.loads(json.dumps(saved.facts)), dict(saved.arrays)
    blobs: dict[str, Any] = dict(saved.blobs)
    forgery.facts(facts)
    if forgery.array is not None:
        name, change = forgery.array
        array = arrays.pop(name)
        if change is not None:
            arrays[name] = change(array.copy())
    if forgery.blob is not None:
        name, blob = forgery.blob
        blobs[name] = blob
    writers = {n: partial(_put, blob=b) for n, b in blobs.items() if b is not None}
    write(folder, arrays, facts, writers)


def _put(file: SectionWriter, blob: Any) -> None:
    file.write(blob)


def try_forgeries(where: str, name: str, options: dict[str, Any], seed: int, many: int) -> None:
    """Try forgeries of the index of one matcher; what it says goes to the file `said`."""
    with Path(where, "said").open("wb") as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
    faulthandler.enable()
    folder, forged, chance = Path(where, "index"), Path(where, "forged"), random.Random(seed)
    calls = name == "calls"
    with_calls(folder) if calls else made(folder, name, options)
    used(folder, calls)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    saved = read(folder)
    every = list(forgeries(saved, chance))
    chosen = every if many >= len(every) else chance.sample(every, many)
    for each in chosen:
        print("try", each.name, flush=True)
        shutil.rmtree(forged, ignore_errors=True)
        rewrite(forged, saved, each)
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        try:
            used(forged, calls)
        except TamisError:
            pass
        except BaseException as why:  # noqa: BLE001 - any other kind is a fault
            at = traceback.extract_tb(why.__traceback__)[-1]
            print("WRONG", each.name, type(why).__name__, why, at.filename[-40:], at.lineno)
        faulthandler.cancel_dump_traceback_later()
    print("tried", len(chosen), flush=True)
