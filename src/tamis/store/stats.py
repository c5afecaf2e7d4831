"""Statistics of past events: what is usual, for whoever has to plan for events to come.

    STATS/stats.json        counts, the values of each attribute, what came of operators
    STATS/sample.parquet    some of the events, drawn at random, in no order

A matcher lays clauses out for the events of the sample; a scheduler begins with what operators came
to answer and to cost; and people read how their events are distributed. The folder is put in place
whole. Any first so many events of the sample are a random sample as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from tamis.errors import StoreError
from tamis.files.atomic import atomic_folder
from tamis.files.json_document import read_json, write_json
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as

if TYPE_CHECKING:
    from tamis.schedule.statistics import Known

FORMAT = 1
DOCUMENT, SAMPLE = "stats.json", "sample.parquet"
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of which the quantiles are

Value = int | float | str | bool
"""A value of an attribute as JSON has it: a point in time is text."""


@dataclass(frozen=True)
class AttributeStats:
    """The values of an attribute over all good events. Of opaque ones nothing but the counts."""

    kind: str  # of its domain
    bound: int  # events that bind it
    values: int  # that they have; more than `bound` where events have several
    distinct: int | None = None  # about how many different ones
    low: Value | None = None  # the least, where values have an order
    high: Value | None = None
    quantiles: tuple[Value, ...] = ()  # of `SHARES`: so many are at most this
    frequent: tuple[tuple[Value, float], ...] = ()  # most frequent ones; the share of all events


@dataclass(frozen=True)
class PredicateStats:
    """A predicate on an operator, for events that pass the ordinary predicates beside it."""

    share: float  # of events for which it is true
    seconds: float  # that a call takes in the mean
    seen: int  # events that say so
    faults: int = 0  # events for which the operator failed


@dataclass(frozen=True)
class Most:
    """A subscription that many events match."""

    id: int | str
    share: float  # of events
    condition: str | None = None


@dataclass(frozen=True)
class SubscriptionStats:
    """What events of the sample match."""

    subscriptions: int
    events: int  # of the sample, that were matched
    pairs: int
    matched: int  # events with a pair
    most: tuple[Most, ...] = ()  # matched most, descending


@dataclass(frozen=True)
class Place:
    """Where in a log an event is, and when that was appended."""

    sequence: int
    appended: str


@dataclass(frozen=True)
class Stats:
    """All that is known of past events.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> price = AttributeStats("decimal", 2, 2, 2, 3.0, 80.0, (3.0, 3.0, 3.0, 80.0, 80.0))
    >>> stats = Stats("events/*.parquet", {}, 2, 1, {"price": price},
    ...               sample=pa.table({"price": [80.0, 3.0]}))
    >>> stats.save(f"{place.name}/stats")
    >>> Stats.open(f"{place.name}/stats") == stats
    True
    """

    of: str  # files or log
    schema: Mapping[str, Any]  # the document of it
    events: int  # good ones
    dead: int  # rows that are none, and have no part in what follows
    attributes: Mapping[str, AttributeStats]
    predicates: Mapping[str, PredicateStats] = field(default_factory=dict)  # by their texts
    subscriptions: SubscriptionStats | None = None
    first: Place | None = None  # of a log
    last: Place | None = None
    reason: str | None = None  # why one of the dead is
    seed: int = 0  # of the sample
    made: str = ""  # when
    sample: pa.Table = field(default_factory=lambda: pa.table({}))

    @property
    def known(self) -> dict[str, Known]:
        """What schedulers may begin with; costs in milliseconds."""
        from tamis.schedule.statistics import Known

        return {
            text: Known(each.share, 1000 * each.seconds, each.seen)
            for text, each in self.predicates.items()
        }

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Put all of it into a folder; with `replace`, in the place of statistics before."""
        target = check_free(folder, replace=replace)
        document = asdict(_without_sample(self)) | {"format": FORMAT}
        del document["sample"]
        with os_errors_as(StoreError, f"{target}: cannot be written"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(target, replace=target.exists()) as draft:
                parquet.write_table(self.sample, draft / SAMPLE)
                write_json(draft / DOCUMENT, document)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Stats:
        """The statistics in a folder; a `StoreError` says what is there instead."""
        path = Path(folder).absolute() / DOCUMENT
        document = read_json(path, "statistics", StoreError, newest=FORMAT)
        del document["format"]
        try:
            document["attributes"] = _each(AttributeStats, document["attributes"])
            document["predicates"] = _each(PredicateStats, document["predicates"])
            for name, kind in (("first", Place), ("last", Place)):
                document[name] = _one(kind, document[name])
            told = document["subscriptions"]
            if told is not None:
                told["most"] = tuple(Most(**each) for each in told["most"])
                document["subscriptions"] = SubscriptionStats(**told)
            return cls(**document, sample=_read(path.with_name(SAMPLE)))
        except (KeyError, TypeError, AttributeError) as why:
            raise StoreError(f"{path}: is damaged, it does not fit together: {why}") from None


def check_free(folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Refuse a folder that statistics cannot be put into; what holds others is replaced only."""
    target = Path(folder).absolute()
    with os_errors_as(StoreError, f"{target}: cannot be read"):
        if target.exists() and not target.is_dir():
            raise StoreError(f"{target}: is a file; statistics need a folder of their own")
        names = names_in(target) if target.exists() else set()
    if not names:
        return target
    if not names <= {DOCUMENT, SAMPLE}:
        raise StoreError(f"{target}: holds other things than statistics; name another folder")
    if not replace:
        raise StoreError(f"{target}: holds statistics already; name another folder, or replace it")
    return target


def _without_sample(stats: Stats) -> Stats:
    """`asdict` would copy all of it."""
    return replace(stats, sample=pa.table({}))


def _one(kind: Any, given: Mapping[str, Any] | None) -> Any:
    """A record, with tuples where JSON has lists."""
    if given is None:
        return None
    return kind(**{name: _tuples(value) for name, value in given.items()})


def _each(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _one(kind, each) for name, each in given.items()}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _read(path: Path) -> pa.Table:
    try:
        return parquet.read_table(path)
    except FileNotFoundError:
        raise StoreError(f"{path.parent}: is damaged, {path.name} is missing") from None
    except (OSError, pa.ArrowException) as why:
        raise StoreError(f"{path}: is damaged or cannot be read: {why}") from None
