"""The conditions of subscriptions as they were given, to show and explain them, by leading slot.

A single condition is kept as given. The conditions of a table stay in its column, which is kept
whole while enough of its rows are live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tamis.encode.columns import is_text
from tamis.engine.saved.saved_part import SavedPart
from tamis.errors import SubscriptionError
from tamis.files.arrays import Int64s
from tamis.files.saved_checks import array_of, require, within
from tamis.index.growth import grown
from tamis.model.condition import Condition
from tamis.model.printer import to_text


class TableRow(NamedTuple):
    """A condition kept as a row of the table it came with."""

    column: pa.Array
    row: int


ConditionSource = str | Condition | TableRow


class ConditionSources:
    """What each subscription was given as, by leading slot."""

    def __init__(self) -> None:
        self._single: dict[int, str | Condition] = {}  # conditions not from a table, by slot
        self._column: dict[int, tuple[pa.Array, int]] = {}  # number -> (column, live rows)
        self._column_of = np.zeros(0, np.int32)  # number of the column of a slot, or -1
        self._row_of = np.zeros(0, np.int64)
        self._columns_made = 0

    def keep(self, slot: int, source: str | Condition) -> None:
        """Keep a single condition."""
        self._single[slot] = source

    def keep_table(self, slots: Int64s, column: pa.Array) -> None:
        """Keep the rows of a table, one for each slot."""
        top = int(slots.max(initial=-1)) + 1
        # The rows first: a slot with a column has a row, even after an interrupt.
        self._row_of = grown(self._row_of, top)
        self._column_of = grown(self._column_of, top, -1)
        number = self._columns_made
        self._columns_made += 1
        self._column[number] = (column, len(slots))
        self._column_of[slots] = number
        self._row_of[slots] = np.arange(len(slots))

    def of(self, slot: int) -> ConditionSource:
        """The condition of a slot, as it was given."""
        single = self._single.get(slot)
        if single is not None:
            return single
        return TableRow(self._column[int(self._column_of[slot])][0], int(self._row_of[slot]))

    def mentioning(self, names: Sequence[str]) -> list[int]:
        """The slots whose conditions may mention one of these attributes; all that do.

        A name occurs in a text as it is, so columns of texts are searched without parsing.
        """
        found = [
            slot
            for slot, source in self._single.items()
            if any(
                name in (source if isinstance(source, str) else to_text(source)) for name in names
            )
        ]
        for number, (column, _) in self._column.items():
            slots = np.flatnonzero(self._column_of == number)
            there = np.zeros(len(column), np.bool_)
            there[_mentioning(column, names)] = True
            found += slots[there[self._row_of[slots]]].tolist()
        return found

    def drop(self, slot: int) -> None:
        """Forget the condition of a slot, and its table when few live rows are left."""
        if self._single.pop(slot, None) is not None:
            return
        number = int(self._column_of[slot])
        column, live = self._column[number]
        self._column_of[slot] = -1
        if live == 1:
            del self._column[number]
        elif len(column) > 4 * live + 1024:
            mine = np.flatnonzero(self._column_of == number)
            fewer = column.take(pa.array(self._row_of[mine])), live - 1
            row_of = self._row_of.copy()
            row_of[mine] = np.arange(len(mine))
            # One step: an interrupt must not leave the rows of one column with another.
            vars(self).update(_column={**self._column, number: fewer}, _row_of=row_of)
        else:
            self._column[number] = (column, live - 1)

    def check(self, slots: Iterable[int]) -> None:
        """Raise unless exactly these slots have a condition."""
        rows = np.flatnonzero(self._column_of >= 0)
        assert sorted([*self._single, *rows.tolist()]) == sorted(slots)
        numbers, live = np.unique(self._column_of[rows], return_counts=True)
        assert dict(zip(numbers.tolist(), live.tolist(), strict=True)) == {
            number: live for number, (_, live) in self._column.items()
        }
        for number, (column, _) in self._column.items():
            mine = self._row_of[rows[self._column_of[rows] == number]]
            assert len(set(mine.tolist())) == len(mine)
            assert int(mine.max()) < len(column)

    def saved(self) -> SavedPart:
        """All conditions in few columns: single ones in one, and tables joined by type."""
        pieces: dict[pa.DataType, list[SourceColumn]] = {}
        for piece in self.columns():
            pieces.setdefault(piece.column.type, []).append(piece)
        joined = [piece for alike in pieces.values() for piece in _joined(alike)]
        top = max((int(piece.slots.max()) + 1 for piece in joined), default=0)
        column_of, row_of = np.full(top, -1, np.int32), np.zeros(top, np.int64)
        for number, piece in enumerate(joined):
            column_of[piece.slots] = number
            row_of[piece.slots] = piece.rows
        return SavedPart(
            {"column": column_of, "row": row_of},
            {"live": [len(piece.slots) for piece in joined]},
            {str(number): {"source": piece.column} for number, piece in enumerate(joined)},
        )

    def restore(self, saved: SavedPart) -> None:
        """Restore what `saved` returned: then every condition is a row of a column."""
        self._column_of, self._row_of = (
            array_of(saved.arrays, "column", np.int32),
            array_of(saved.arrays, "row"),
        )
        self._column = {
            number: (_source(saved.columns[str(number)]["source"]), live)
            for number, live in enumerate(saved.facts["live"])
        }
        self._columns_made = len(self._column)

    def check_saved(self, leaders: Int64s) -> None:
        """Refuse what was restored if it does not fit the leading slots."""
        column, rows = self._column_of, self._row_of
        require(len(column) == len(rows), "there is a row for each column of a condition")
        within("column", column, -1, len(self._column))
        within("order", leaders, 0, len(column))
        mine = column[leaders]
        each = np.bincount(mine[mine >= 0], minlength=len(self._column)).tolist()
        fits = (mine >= 0).all() and np.count_nonzero(column >= 0) == len(leaders)
        require(fits, "every subscription has a condition")
        require(each == [live for _, live in self._column.values()], "'live' counts conditions")
        sizes = np.array([len(each) for each, _ in self._column.values()], np.int64)
        rows = rows[leaders]
        fits = (rows >= 0).all() and (rows < sizes[mine]).all()
        require(fits, "every condition is in its column")

    def columns(self) -> Iterator[SourceColumn]:
        """All conditions in columns; single ones in one, as text."""
        if self._single:
            texts = [
                each if isinstance(each, str) else to_text(each) for each in self._single.values()
            ]
            slots = np.array(list(self._single), np.int64)
            yield SourceColumn(slots, np.arange(len(slots)), pa.array(texts, pa.large_string()))
        live = np.flatnonzero(self._column_of >= 0)
        live = live[np.argsort(self._column_of[live], kind="stable")]
        numbers, firsts = np.unique(self._column_of[live], return_index=True)
        for number, slots in zip(numbers.tolist(), np.split(live, firsts)[1:], strict=True):
            column, rows = self._column[number][0], self._row_of[slots]
            if len(column) > 2 * len(rows):  # most rows are gone
                column, rows = column.take(pa.array(rows)), np.arange(len(rows))
            yield SourceColumn(slots, rows, column)


class SourceColumn(NamedTuple):
    """A column, and the row of each slot."""

    slots: Int64s
    rows: Int64s
    column: pa.Array


def _source(column: pa.Array) -> pa.Array:
    """Refuse a column that cannot hold conditions."""
    if not is_text(column.type):
        check_predicates(column.type)
    require(column.null_count == 0, "no condition is null")
    return column


def _mentioning(column: pa.Array, names: Sequence[str]) -> Int64s:
    """The rows of a column that may mention an attribute."""
    if is_text(column.type):
        texts, found = column.cast(pa.large_string()), np.zeros(len(column), np.bool_)
        for name in names:
            found |= np.asarray(pc.match_substring(texts, name))
        return np.flatnonzero(found)
    named = pc.struct_field(pc.list_flatten(column), "attribute")
    wanted = np.asarray(pc.is_in(named.cast(pa.string()), pa.array(names, pa.string())))
    return np.unique(np.asarray(pc.list_parent_indices(column))[wanted])


def check_predicates(kind: pa.DataType) -> None:
    """Refuse the type of a column that cannot hold lists of predicates."""
    expected = "list<struct<attribute: string, comparator: string, value: double, text: string>>"
    wrong = SubscriptionError(f"the column 'predicates' is {kind}, expected {expected}")
    if not isinstance(kind, pa.ListType | pa.LargeListType):
        raise wrong
    struct = kind.value_type
    if not isinstance(struct, pa.StructType):
        raise wrong
    fields = {struct.field(i).name: struct.field(i).type for i in range(struct.num_fields)}
    needed = {"attribute", "comparator"}
    if not needed <= fields.keys() <= needed | {"value", "text"}:
        raise wrong
    for name, kept in fields.items():
        inner = kept.value_type if isinstance(kept, pa.DictionaryType) else kept
        fits = (
            types.is_floating(inner) or types.is_integer(inner)
            if name == "value"
            else is_text(inner)
        )
        if not (fits or types.is_null(inner)):
            raise wrong


def _joined(pieces: list[SourceColumn]) -> list[SourceColumn]:
    """Join pieces of one type; unchanged if one column cannot hold them all."""
    if len(pieces) == 1:
        return pieces
    try:
        column = pa.concat_arrays([piece.column for piece in pieces])
    except pa.ArrowException:  # for example more text than 32-bit offsets reach
        return pieces
    before = np.cumsum([0, *(len(piece.column) for piece in pieces)])
    rows = [piece.rows + first for piece, first in zip(pieces, before[:-1], strict=True)]
    slots = np.concatenate([piece.slots for piece in pieces])
    return [SourceColumn(slots, np.concatenate(rows), column)]
