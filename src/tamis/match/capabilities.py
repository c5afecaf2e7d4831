"""Optional features of matchers. A matcher gains a capability by inheriting from its class.

Callers test for a capability with `isinstance`. The functions `match_bits`, `settle`, `saved_form`
and `restore` accept any matcher and use the capability if it has it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.encode.shapes.shape_code import EventShape
from tamis.files.arrays import add_prefix, take_prefix
from tamis.files.saved_checks import require
from tamis.match.answers import FoundSlots
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.bitmaps import Bitmaps
from tamis.match.options import whole_number
from tamis.match.plan import LINES, Plan


class AnswersInBits(Matcher):
    """A matcher that can answer in bitmaps directly, faster than by converting lists."""

    @abstractmethod
    def find_bits(self, batch: EventBatch) -> Bitmaps:
        """The answer as bitmaps. Neither the batch nor the clause table is empty.

        The caller owns the words and may write to them. It does not write to the slots. The slots
        must not change when clauses are added or removed later.
        """


class MatchesShapes(Matcher):
    """A matcher that matches a single event faster than as a batch of one."""

    @abstractmethod
    def match_shape(self, shape: EventShape) -> FoundSlots | None:
        """The slots that the event in a shape matches, valid until the next call.

        None, without having counted the event, if it has to come as a batch.
        """


class MatchReader(ABC):
    """What one thread at a time needs to match while others match too: buffers and counters."""

    @abstractmethod
    def is_ready(self, events: int) -> bool:
        """Whether so many events may come now. If not, the matcher has something to do alone."""

    @abstractmethod
    def match(self, batch: EventBatch) -> Matches | None:
        """The slots whose clause holds, for each event of a batch for which the reader was ready.

        None if it no longer is, because the event itself has changed the clauses.
        """

    @abstractmethod
    def match_shape(self, shape: EventShape) -> FoundSlots | None:
        """As `MatchesShapes.match_shape`; also None if the reader is not ready."""


class ServesReaders(MatchesShapes):
    """A matcher that several threads may ask at once, each with a reader of its own.

    While readers match, nobody adds or removes clauses, or calls the matcher itself.
    """

    @abstractmethod
    def reader(self) -> MatchReader:
        """A new reader. The matcher keeps it, and tells it when clauses change."""


def match_bits(matcher: Matcher, batch: EventBatch) -> Bitmaps:
    """The answer of a matcher, as bitmaps."""
    if isinstance(matcher, AnswersInBits) and len(matcher) and len(batch):
        matcher.tally.events += len(batch)
        return matcher.find_bits(batch)
    return Bitmaps.of(matcher.match(batch), matcher.clauses.live_slots())


class Plans(Matcher):
    """A matcher that places clauses according to the events it sees, and can explain its plan."""

    @property
    @abstractmethod
    def planned(self) -> bool:
        """Whether a plan exists, so that clauses have been placed."""

    @abstractmethod
    def plan(self, slots: Slots | None = None, lines: int = LINES) -> Plan:
        """Where clauses are placed, the expected cost, and why.

        With `slots`, the plan also explains each of these clauses. At most `lines` entries of each
        kind are listed individually; with 0, only the clauses are explained, at little cost.
        """

    @abstractmethod
    def settle(self) -> None:
        """Finish a plan that is being computed or applied."""


def settle(matcher: Matcher) -> None:
    """Let a matcher that plans finish planning and moving clauses. For benchmarks."""
    if isinstance(matcher, Plans):
        matcher.settle()


class RunsInThreads(Matcher):
    """A matcher that splits a batch over threads. `threads` may change between batches."""

    threads = whole_number(
        1, "threads per batch; 0 means one per processor", least=0, most=1024, saved=False
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.threads = self.threads or len(os.sched_getaffinity(0))


class Savable(Matcher):
    """A matcher that saves its index, because reading it is faster than rebuilding it."""

    layout: ClassVar[int]  # version of the saved form: increase it when arrays or facts change

    @abstractmethod
    def index_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the index, not copied. Names must not begin with `clauses.`."""

    @abstractmethod
    def index_facts(self) -> dict[str, Any]:
        """The rest of the saved index, in JSON types: keys are text, sequences are lists."""

    @abstractmethod
    def restore_index(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Restore the index from these arrays and facts. Options are the same; `clear` has run.

        The arrays are mapped from files copy-on-write, and the matcher owns them from now on. It
        may write to them; writes are private and cost memory.
        """

    def check_saved(self) -> None:
        """Raise a `SavedIndexError` if the restored index could lead a kernel astray.

        The clause table has been checked. `files.saved_checks` has what most checks need.
        """


class SavedForm(NamedTuple):
    """The saved parts of a matcher."""

    layout: int
    arrays: dict[str, NDArray[Any]]
    facts: dict[str, Any]


def layout_of(matcher: Matcher) -> int:
    """The version of a matcher's saved form. It is 1 if only the clause table is saved."""
    return matcher.layout if isinstance(matcher, Savable) else 1


def saved_form(matcher: Matcher) -> SavedForm:
    """The clause table and, if the matcher is `Savable`, its index. Nothing is copied."""
    arrays, facts = {}, {}
    if isinstance(matcher, Savable):
        arrays, facts = matcher.index_arrays(), matcher.index_facts()
    table = add_prefix("clauses", matcher.clauses.arrays())
    return SavedForm(layout_of(matcher), {**table, **arrays}, facts)


def restore(
    matcher: Matcher,
    arrays: Mapping[str, NDArray[Any]],
    facts: Mapping[str, Any],
    attributes: int | None = None,
) -> None:
    """Restore a matcher, created with the same options, from its saved arrays and facts.

    With `attributes`, their number in the schema, every array is checked.
    """
    matcher.clauses.restore(take_prefix("clauses", arrays))
    if attributes is not None:
        require(matcher.clauses.width <= attributes, "the schema has the attributes of clauses")
        matcher.clauses.check_saved()
    if isinstance(matcher, Savable):
        matcher.clear()
        matcher.restore_index(arrays, facts)
        if attributes is not None:
            matcher.check_saved()
    else:
        matcher.rebuild()
