"""What only some matchers can do. A matcher takes on a capability by inheriting from its class.

Callers ask with `isinstance`. The functions `match_bits`, `settle`, `saved_form` and `restore` take
any matcher, and use the capability where it is there.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.files.arrays import add_prefix, take_prefix
from tamis.match.base import Matcher, Slots
from tamis.match.bitmaps import Bitmaps
from tamis.match.options import whole_number
from tamis.match.plan import LINES, Plan


class AnswersInBits(Matcher):
    """Has its answer as bits anyway, or finds it sooner so."""

    @abstractmethod
    def find_bits(self, batch: EventBatch) -> Bitmaps:
        """The answer as bits. There are events in the batch, and clauses in the table.

        The words are given away: an engine writes in them. The slots are not written in, and must
        stay what they are when clauses come and go.
        """


def match_bits(matcher: Matcher, batch: EventBatch) -> Bitmaps:
    """What a matcher answers, as bits."""
    if isinstance(matcher, AnswersInBits) and len(matcher) and len(batch):
        matcher.tally.events += len(batch)
        return matcher.find_bits(batch)
    return Bitmaps.of(matcher.match(batch), matcher.clauses.live_slots())


class Plans(Matcher):
    """Decides where clauses lie by the events it sees, and can say so."""

    @property
    @abstractmethod
    def planned(self) -> bool:
        """Whether it has decided where its clauses lie."""

    @abstractmethod
    def plan(self, slots: Slots | None = None, lines: int = LINES) -> Plan:
        """Where clauses lie, what that is expected to cost, and why; with `slots`, of each of
        them too. At most so many `lines` of each sort are listed one by one."""

    @abstractmethod
    def settle(self) -> None:
        """Finish a plan that is being made or followed."""


def settle(matcher: Matcher) -> None:
    """Let a matcher that plans finish what it has begun. For benchmarks."""
    if isinstance(matcher, Plans):
        matcher.settle()


class RunsInThreads(Matcher):
    """Cuts a batch over threads. Their number may be changed between two batches."""

    threads = whole_number(
        1, "threads of a batch; 0 is one for each processor", least=0, saved=False
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.threads = self.threads or len(os.sched_getaffinity(0))


class Savable(Matcher):
    """Saves its index, which is quicker read than made again from the table of clauses."""

    layout: ClassVar[int]  # of what is saved: the next number when arrays or facts change

    @abstractmethod
    def index_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the index, not copied. No name begins with `clauses.`."""

    @abstractmethod
    def index_facts(self) -> dict[str, Any]:
        """What else is saved of the index, in types that JSON has: text for keys, lists."""

    @abstractmethod
    def restore_index(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Take over the index that gave these, under the same options, once it is cleared.

        The arrays are mapped from files and the matcher's own from then on: writing to them is
        allowed and private, and costs memory.
        """


class SavedForm(NamedTuple):
    """What is saved of a matcher."""

    layout: int
    arrays: dict[str, NDArray[Any]]
    facts: dict[str, Any]


def layout_of(matcher: Matcher) -> int:
    """The number of the form in which a matcher is saved. The table alone has 1."""
    return matcher.layout if isinstance(matcher, Savable) else 1


def saved_form(matcher: Matcher) -> SavedForm:
    """The table of clauses, and the index of a matcher that saves it; nothing is copied."""
    arrays, facts = {}, {}
    if isinstance(matcher, Savable):
        arrays, facts = matcher.index_arrays(), matcher.index_facts()
    table = add_prefix("clauses", matcher.clauses.arrays())
    return SavedForm(layout_of(matcher), {**table, **arrays}, facts)


def restore(matcher: Matcher, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Make a matcher what gave these arrays and facts, under the same options."""
    matcher.clauses.restore(take_prefix("clauses", arrays))
    if isinstance(matcher, Savable):
        matcher.clear()
        matcher.restore_index(arrays, facts)
    else:
        matcher.rebuild()
