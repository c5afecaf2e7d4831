"""The events that a schema allows, as far as conditions can tell them apart.

A clause is a *box*: a cell for each attribute that it mentions. Event types connect attributes:
they say which may be bound, which must be, and which may have several values. An event may have
several types. The more types, the more may be bound; so it is enough to look at the largest set of
types that a box allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tamis.encode.clause import EVENT_TYPE_POSITION
from tamis.encode.encoder import Encoder
from tamis.engine.redundancy.cells import Cell, Spans, outside, united
from tamis.engine.redundancy.dense_codes import DenseCodes, dense_codes
from tamis.model.schema import EVENT_TYPE, Schema

Box = dict[int, Cell]
"""A cell for each attribute that is constrained."""


class AttributeUse(NamedTuple):
    """The event types that have an attribute, as sets of bits by their codes."""

    having: int = 0
    mandatory: int = 0
    multiple: int = 0


class SettledBox(NamedTuple):
    """A box, and what event types add to it."""

    box: Box
    types: int  # every type that an event of the box may have
    needed: tuple[int, ...]  # the types that it has include one of each of these sets


class ConsistentEvents:
    """The attributes of a schema: their codes, and their use by event types."""

    def __init__(self, encoder: Encoder) -> None:
        schema = encoder.schema
        self.codes: list[DenseCodes] = [
            dense_codes(codec, encoder.labels.get(at)) for at, codec in enumerate(encoder.codecs)
        ]
        self.free = schema.is_open or not schema.event_types
        self.types = 0 if self.free else (1 << len(schema.event_types)) - 1
        self.uses = [] if self.free else _uses(schema, encoder)

    @property
    def one_type(self) -> bool:
        """Whether there is nothing to choose: event types add nothing to a box."""
        return self.free or self.types == 1

    def everything(self, attribute: int) -> Spans:
        """All codes of an attribute."""
        codes = self.codes[attribute]
        return ((codes.bottom, codes.top),)

    def any_state(self, attribute: int) -> Cell:
        """All states of an attribute of which nothing is known."""
        absent = self.free or attribute != EVENT_TYPE_POSITION
        return Cell(absent, self.everything(attribute))

    def single(self, attribute: int) -> bool:
        """Whether no event has several values of an attribute."""
        return (
            not self.free and attribute != EVENT_TYPE_POSITION and not self.uses[attribute].multiple
        )

    def always_bound(self, attribute: int) -> bool:
        """Whether every event binds an attribute."""
        if self.free:
            return False
        return attribute == EVENT_TYPE_POSITION or self.uses[attribute].mandatory == self.types

    def ever_bound(self, attribute: int) -> bool:
        """Whether some event binds an attribute."""
        return self.free or attribute == EVENT_TYPE_POSITION or bool(self.uses[attribute].having)

    def settle(self, box: Box, without_types: int = 0) -> SettledBox | None:
        """The box without states that no consistent event has; None if no event is left."""
        if self.free:
            return None if any(cell.empty for cell in box.values()) else SettledBox(box, 0, ())
        types = self.types & ~without_types
        given = box.get(EVENT_TYPE_POSITION)
        type_hits: list[int] = []
        if given is not None:
            types &= _bits(given.allowed)
            type_hits = [_bits(hit) for hit in given.hits]
        while True:
            before, needed, found = types, list(type_hits), dict(box)
            for at, given_cell in box.items():
                if at == EVENT_TYPE_POSITION:
                    continue
                use, one = self.uses[at], given_cell.one_value()
                cell = given_cell if use.multiple & types else one
                if not (use.having & types and cell.binds):
                    if not given_cell.absent:
                        return None
                    cell = Cell(True, ())
                    types &= ~use.mandatory
                elif not cell.absent:
                    needed.append(use.having if one.binds else use.multiple)
                found[at] = cell
            needed = [each & types for each in needed]
            if not types or not all(needed):
                return None
            if types == before:
                return SettledBox(found, types, tuple(needed))

    def surely_bound(self, settled: SettledBox, attribute: int) -> bool:
        """Whether all events of a box bind an attribute that the box does not mention."""
        left = settled.types & ~self.uses[attribute].mandatory
        return not left or not all(each & left for each in settled.needed)

    def types_cell(self, settled: SettledBox) -> Cell:
        """The event types that events of a box have."""
        hits = tuple(_spans(each) for each in settled.needed)
        return Cell(False, _spans(settled.types), hits).simplest()


def _uses(schema: Schema, encoder: Encoder) -> list[AttributeUse]:
    codec = encoder.codecs[encoder.positions[EVENT_TYPE]]
    found = [AttributeUse() for _ in schema.attributes]
    for name, view in schema.event_types.items():
        bit = 1 << codec.code(name)
        for attribute, use in view.items():
            at = encoder.positions[attribute]
            known = found[at]
            found[at] = AttributeUse(
                known.having | bit,
                known.mandatory | (bit if use.mandatory else 0),
                known.multiple | (bit if use.multiple else 0),
            )
    return found


def _bits(spans: Spans) -> int:
    found = 0
    for low, high in spans:
        found |= ((1 << (high - low + 1)) - 1) << low
    return found


def _spans(bits: int) -> Spans:
    return united((at, at) for at in range(bits.bit_length()) if bits >> at & 1)


def box_minus(events: ConsistentEvents, box: Box, other: Box) -> list[Box]:
    """The part of a box outside another one, in pieces; the box itself if they have no overlap."""
    rest, pieces = dict(box), []
    for at, cell in other.items():
        mine = rest.get(at) or events.any_state(at)
        both = mine.intersect(cell)
        if events.single(at):
            both = both.one_value()
        if both.empty:
            return [box]
        for piece in mine.minus(cell):
            left = piece.one_value() if events.single(at) else piece
            if not left.empty:
                pieces.append({**rest, at: left})
        rest[at] = both
    return pieces


class BudgetSpentError(Exception):
    """A question about boxes needs more steps than it may take."""


class BoxQuestion:
    """Whether all events of a box are in the union of others, within a number of steps."""

    def __init__(self, events: ConsistentEvents, steps: int) -> None:
        self._events, self.steps = events, steps

    def covered(self, box: Box, others: list[Box], first: int = 0) -> bool:
        """Raises a `BudgetSpentError` if that takes too many steps."""
        stack = [(box, first)]
        while stack:
            piece, at = stack.pop()
            self.steps -= 1
            if self.steps < 0:
                raise BudgetSpentError
            if self._events.settle(piece) is None:
                continue
            while at < len(others):
                pieces = box_minus(self._events, piece, others[at])
                at += 1
                if len(pieces) == 1 and pieces[0] is piece:
                    continue
                stack += [(each, at) for each in pieces]
                break
            else:
                return False
        return True


def box_of(
    events: ConsistentEvents, terms: Iterable[tuple[int, bool, Spans]], missing: Iterable[int]
) -> Box:
    """The box of terms (attribute, whether some value is inside or none is) and of the missing."""
    box: Box = {at: Cell(True, ()) for at in missing}
    for at, some, spans in terms:
        codes = events.codes[at]
        cell = box.get(at) or Cell(False, ((codes.bottom, codes.top),))
        cell = (
            cell.hitting(spans) if some else cell.allowing(outside(spans, codes.bottom, codes.top))
        )
        box[at] = cell
    return {
        at: (cell.one_value() if events.single(at) else cell).simplest() for at, cell in box.items()
    }


def is_free(events: ConsistentEvents, at: int, cell: Cell) -> bool:
    """Whether every consistent event satisfies a cell."""
    pieces = events.any_state(at).minus(cell)
    if events.single(at):
        pieces = [piece.one_value() for piece in pieces]
    return all(events.settle({at: piece}) is None for piece in pieces)
