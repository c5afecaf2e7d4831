"""Frames: the arrays that compiled code makes from one are those of the record, each in its place.

A wrong number in `frame.py` would give some array another's place; so here every array has its own
length and its own content.
"""

from __future__ import annotations

import gc
from itertools import count
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.encode.terms import from_rows
from tamis.files.arrays import flatten
from tamis.index.kernel import kernel
from tamis.match.default.matcher import Tamis
from tamis.match.default.passes.buffers import ChunkBuffers, empty_buffers, fitting_buffers
from tamis.match.default.passes.frame import Frame, Framed, buffers_in, frame, index_in
from tamis.match.default.structure.routes import RoutedIndex
from tamis.testing.matcher_checks import answers

KINDS = [RoutedIndex, ChunkBuffers]


@kernel
def _index(of: Frame) -> RoutedIndex:
    return index_in(of)


@kernel
def _room(of: Frame) -> ChunkBuffers:
    return buffers_in(of)


REBUILT = {RoutedIndex: _index, ChunkBuffers: _room}


def dtypes(kind: Any) -> dict[str, np.dtype[Any]]:
    """What the types of a named tuple say of its arrays, those within others included."""
    found: dict[str, np.dtype[Any]] = {}
    for name, hint in get_type_hints(kind).items():
        if hasattr(hint, "_fields"):
            found |= {f"{name}.{inner}": each for inner, each in dtypes(hint).items()}
        else:
            (scalar,) = get_args(get_args(hint)[1])
            found[name] = np.dtype(scalar)
    return found


def made(kind: Any, numbers: Any = None) -> Any:
    """A record of a kind, with arrays of different lengths, filled with different numbers."""
    numbers = numbers or count(3)
    parts = {}
    for name, hint in get_type_hints(kind).items():
        if hasattr(hint, "_fields"):
            parts[name] = made(hint, numbers)
        else:
            (scalar,) = get_args(get_args(hint)[1])
            number = next(numbers)
            parts[name] = (np.arange(number) * 7 + number).astype(scalar)
    return kind(**parts)


def same(found: NDArray[Any], right: NDArray[Any], name: str) -> None:
    assert found.dtype == right.dtype, name
    assert len(found) == len(right), name
    assert found.tolist() == right.tolist(), name


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_of_the_record(kind: Any) -> None:
    record = made(kind)
    rebuilt = REBUILT[kind](frame(record))
    assert type(rebuilt) is kind
    wanted, found = flatten(record), flatten(rebuilt)
    assert list(found) == list(wanted) == list(dtypes(kind))
    for name, array in wanted.items():
        same(found[name], array, name)
        found[name][0] += 1
        assert array[0] == found[name][0], "not a copy"


def test_every_array_is_in_a_frame_once_in_order() -> None:
    for kind in KINDS:
        record = made(kind)
        arrays = flatten(record).values()
        pairs = frame(record).reshape(-1, 2)
        assert pairs[:, 0].tolist() == [array.ctypes.data for array in arrays]
        assert pairs[:, 1].tolist() == [len(array) for array in arrays]


def _rows(number: int) -> list[tuple[int, int, int, int, int]]:
    return [(0, 0, 0, number, number + number % 3), (1, 1, 0, 0, number % 50)]


def real_index(clauses: int) -> RoutedIndex:
    matcher = Tamis()
    matcher.add(np.arange(clauses), from_rows([_rows(number) for number in range(clauses)]))
    answers(matcher, [{0: [5], 1: [5]}])
    (framed,) = matcher._indexes()
    return framed.record


def fits(record: Any) -> None:
    """A frame knows no types: arrays must be what compiled code takes them for."""
    for (name, kind), array in zip(
        dtypes(type(record)).items(), flatten(record).values(), strict=True
    ):  # fmt: skip
        assert array.dtype == kind, name
        assert array.flags.c_contiguous, name
        assert array.ndim == 1, name


@pytest.mark.parametrize("clauses", [1, 3, 1000])
def test_indexes_are_of_the_types_that_a_frame_takes_for_granted(clauses: int) -> None:
    index = real_index(clauses)
    fits(index)
    for name, array in flatten(_index(frame(index))).items():
        same(array, flatten(index)[name], name)


def test_rooms_are_of_the_types_that_a_frame_takes_for_granted() -> None:
    buffers = empty_buffers()
    fits(buffers)
    fits(fitting_buffers(buffers, real_index(1000), 7, 100, 300))


def test_a_frame_keeps_its_record() -> None:
    framed = Framed(made(RoutedIndex))
    wanted = {name: array.tolist() for name, array in flatten(framed.record).items()}
    gc.collect()
    junk = [np.full(size, -1) for size in range(3, 60) for _ in range(5)]
    rebuilt = _index(framed.frame)
    assert {name: array.tolist() for name, array in flatten(rebuilt).items()} == wanted
    assert len(junk) == 285
