"""Conditions on the elements of one list of structs, each with a number.

An engine of its own, over the schema of the element, holds each distinct condition once. The
elements of a batch of events are a batch of that engine. Its answer becomes a column of the events:
the numbers of the conditions that some element of the event satisfies, and 0 if there is an element
at all. So `some item in items (…)` is `items contains 3` to a matcher, and its negation is
`items excludes 3`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tamis.encode.batch import Column, EventBatch
from tamis.errors import NeverTrueError
from tamis.files.arrays import Int64s
from tamis.model.condition import And, Condition, Not, Or, Some
from tamis.model.domain import Domain
from tamis.model.elements.structs import Structs, joined_open
from tamis.model.event import Event
from tamis.model.printer import to_text
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.encode.encoder import Encoder

BOUND, FIRST = 0, 1  # a code of every list with elements; the first number
NEVER = -1  # the number of a condition that no element can satisfy

_MANY = 40  # conditions that are subscribed as a table
_LONG = 1 << 14  # characters of a condition that is subscribed alone


class ElementMatches(Protocol):
    """The answer of an engine."""

    @property
    def events(self) -> Int64s: ...
    @property
    def subscriptions(self) -> Any: ...


class ElementEngine(Protocol):
    """An engine over the schema of the element."""

    encoder: Encoder

    def __len__(self) -> int: ...
    def ids(self) -> list[Any]: ...
    def compile(self, condition: Condition, *, stored: bool) -> object: ...
    def subscribe(self, condition: Condition, id: int, *, stored: bool) -> object: ...
    def subscribe_table(self, table: Any, *, stored: bool) -> int: ...
    def unsubscribe(self, id: int) -> None: ...
    def match_batch(self, events: EventBatch) -> ElementMatches: ...
    def check(self) -> None: ...


class ElementState(NamedTuple):
    """The numbers of conditions, with their uses and keys; the next number."""

    numbers: list[int]
    uses: list[int]
    keys: list[str]
    next: int


class ElementConditions:
    """The conditions on the elements of one attribute, by number, with their uses."""

    def __init__(self, element: Schema, engines: Callable[[Schema], ElementEngine] | None) -> None:
        self.element = element
        self._engines = engines
        self.engine: ElementEngine | None = None  # from the first condition on
        self._encoder: Encoder | None = None  # until then
        self._numbers: dict[str, int] = {}  # by key of the condition
        self._keys: dict[int, str] = {}
        self._reserved: dict[int, Condition] = {}  # numbers that no clause uses yet
        self.uses: dict[int, int] = {}  # by number
        self._next = FIRST

    @property
    def encoder(self) -> Encoder:
        """The encoder of elements."""
        if self.engine is not None:
            return self.engine.encoder
        if self._encoder is None:
            from tamis.encode.encoder import Encoder

            self._encoder = Encoder(self.element)
        return self._encoder

    def extend(self, domain: Domain) -> None:
        """Adopt the attributes that joined an open schema of elements.

        The engine may know more of them after an interrupt, in an order of its own.
        """
        assert isinstance(domain, Structs)
        if domain.element.is_open and self.element != domain.element:
            self.element = joined_open(self.element, domain.element)
            self._encoder = None
            if self.engine is not None:
                self.engine.encoder.extend(self.element)

    # -- conditions --------------------------------------------------------------------------------

    def number(self, condition: Condition) -> int:
        """The number of a type-checked condition; a new one is reserved until a clause uses it."""
        key = _key(condition)
        known = self._numbers.get(key)
        if known is not None:
            return known
        if self.engine is None:
            assert self._engines is not None, "conditions need an engine"
            self.engine = self._engines(self.element)
        try:
            self.engine.compile(condition, stored=True)
        except NeverTrueError:
            return NEVER
        number = self._next
        self._next += 1
        self._reserved[number], self._keys[number] = condition, key
        self._numbers[key] = number
        return number

    def forget_reserved(self) -> None:
        """Forget the numbers of conditions that were refused in the end."""
        for number in list(self._reserved):
            # In this order: a number that is known is reserved or used, even after an interrupt.
            self._numbers.pop(self._keys.get(number, ""), None)
            self._keys.pop(number, None)
            del self._reserved[number]

    def hold(self, numbers: Mapping[int, int]) -> bool:
        """Count uses of numbers; whether some are new to the engine."""
        fresh = {each: self._reserved[each] for each in numbers if each in self._reserved}
        if fresh:
            self._subscribe(fresh)
        for number, uses in numbers.items():
            self.uses[number] = self.uses.get(number, 0) + uses
            self._reserved.pop(number, None)
        return bool(fresh)

    def _subscribe(self, fresh: dict[int, Condition]) -> None:
        assert self.engine is not None
        if len(fresh) >= _MANY:
            texts = {number: to_text(each) for number, each in fresh.items()}
            texts = {number: text for number, text in texts.items() if len(text) < _LONG}
            table = pa.table({"id": list(texts), "condition": list(texts.values())})
            self.engine.subscribe_table(table, stored=True)
            fresh = {number: each for number, each in fresh.items() if number not in texts}
        for number, condition in fresh.items():
            self.engine.subscribe(condition, number, stored=True)

    def release(self, numbers: Iterable[int]) -> None:
        """Release uses of numbers."""
        for number in numbers:
            self.uses[number] -= 1
            if not self.uses[number]:
                assert self.engine is not None
                self.engine.unsubscribe(number)
                del self.uses[number]
                self._numbers.pop(self._keys.pop(number, ""), None)

    def check(self, numbers: Iterable[int]) -> None:
        """Raise if other numbers are in use."""
        assert Counter(numbers) == self.uses
        if self.engine is not None:
            assert sorted(self.engine.ids()) == sorted(self.uses)
            self.engine.check()

    # -- saving ------------------------------------------------------------------------------------

    def state(self) -> ElementState:
        """What is to be saved beside the engine."""
        keys = [self._keys.get(number, "") for number in self.uses]
        return ElementState(list(self.uses), list(self.uses.values()), keys, self._next)

    def restore(self, engine: ElementEngine, state: ElementState) -> None:
        """Restore what `state` returned, with the engine."""
        self.engine, self._next = engine, state.next
        self.element = engine.encoder.schema
        self.uses = dict(zip(state.numbers, state.uses, strict=True))
        self._keys = dict(zip(state.numbers, state.keys, strict=True))
        self._numbers = {key: number for number, key in self._keys.items()}

    # -- events ------------------------------------------------------------------------------------

    def codes(
        self, lists: Sequence[Sequence[Event]], moments: Int64s | int | None = None
    ) -> list[tuple[int, ...]]:
        """The codes of each list of elements; none of an empty list.

        An element has the moment of its event.
        """
        if self.engine is None or not len(self.engine):
            return [(BOUND,) if each else () for each in lists]
        rows = np.repeat(np.arange(len(lists), dtype=np.int64), [len(each) for each in lists])
        if isinstance(moments, np.ndarray):
            moments = moments[rows]
        batch = self.encoder.events([element for each in lists for element in each], moments)
        codes, of = self.column(batch, rows)
        assert of is not None
        ends = np.searchsorted(of, np.arange(len(lists) + 1)).tolist()
        every = codes.tolist()
        return [tuple(every[low:high]) for low, high in pairwise(ends)]

    def column(self, batch: EventBatch, rows: Int64s) -> Column:
        """The column of events whose elements are a batch; element j is of event `rows[j]`."""
        bound = np.unique(rows)
        if self.engine is None or not len(self.engine) or not len(rows):
            return Column(np.zeros(len(bound), np.int64), bound)
        found = self.engine.match_batch(batch)
        numbers = np.asarray(found.subscriptions, np.int64)
        every = np.concatenate([bound, rows[found.events]])
        codes = np.concatenate([np.zeros(len(bound), np.int64), numbers])
        order = np.lexsort((codes, every))
        every, codes = every[order], codes[order]
        fresh = np.ones(len(codes), np.bool_)  # several elements may satisfy one condition
        fresh[1:] = (every[1:] != every[:-1]) | (codes[1:] != codes[:-1])
        return Column(codes[fresh], every[fresh])


def numbers_of(intervals: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers in closed intervals of codes; `exists` has an interval that begins below."""
    return [each for low, high in intervals if low >= FIRST for each in range(low, high + 1)]


def _key(condition: Condition) -> str:
    """A text that equal conditions share, whatever the order of their parts."""
    if isinstance(condition, And | Or):
        word = " and " if isinstance(condition, And) else " or "
        return f"({word.join(sorted({_key(part) for part in condition.parts}))})"
    if isinstance(condition, Not):
        return f"not {_key(condition.part)}"
    if isinstance(condition, Some):
        return f"some {condition.attribute!r} {_key(condition.condition)}"
    return repr(condition)
