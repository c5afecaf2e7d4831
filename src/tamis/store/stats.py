"""Statistics of past events, which help to plan for events to come.

    STATS/stats.json        counts, values of each attribute, answers and costs of operators
    STATS/sample.parquet    some of the events, drawn at random, in random order

A matcher lays out clauses for the events of the sample. A scheduler begins with the known answers
and costs of operators. People read how their events are distributed. The folder appears complete
or not at all. The first n events of the sample are a random sample too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from dataclasses import replace as replace_fields
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
    from tamis.schedule.statistics import PredicateEstimate

FORMAT = 1
DOCUMENT, SAMPLE = "stats.json", "sample.parquet"
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # the quantiles

Value = int | float | str | bool
"""A value of an attribute in JSON: a timestamp is text."""


@dataclass(frozen=True)
class AttributeStats:
    """The values of an attribute over all valid events. Opaque attributes have only counts."""

    kind: str  # of its domain
    bound: int  # events that bind it
    values: int  # bound in all; more than `bound` if some events have several
    distinct: int | None = None  # approximate number of different values
    low: Value | None = None  # the least, if values have an order
    high: Value | None = None
    quantiles: tuple[Value, ...] = ()  # one for each of `SHARES`
    frequent: tuple[tuple[Value, float], ...] = ()  # the most frequent, with their share of events


@dataclass(frozen=True)
class PredicateStats:
    """A predicate with an operator, over events that pass the plain predicates of its clause."""

    share: float  # of events for which it is true
    seconds: float  # mean time of a call
    seen: int  # events counted
    faults: int = 0  # events for which the operator failed


@dataclass(frozen=True)
class TopSubscription:
    """A subscription that many events match."""

    id: int | str
    share: float  # of events
    condition: str | None = None


@dataclass(frozen=True)
class SubscriptionStats:
    """How the events of the sample match."""

    subscriptions: int
    events: int  # of the sample
    pairs: int
    matched: int  # events with a pair
    most: tuple[TopSubscription, ...] = ()  # the most matched first


@dataclass(frozen=True)
class LogPosition:
    """The place of an event in a log, and when it was appended."""

    sequence: int
    appended: str


@dataclass(frozen=True)
class Stats:
    """Statistics of past events, and a sample.

    >>> import tempfile; place = tempfile.TemporaryDirectory()
    >>> price = AttributeStats("decimal", 2, 2, 2, 3.0, 80.0, (3.0, 3.0, 3.0, 80.0, 80.0))
    >>> stats = Stats("events/*.parquet", {}, 2, 1, {"price": price},
    ...               sample=pa.table({"price": [80.0, 3.0]}))
    >>> stats.save(f"{place.name}/stats")
    >>> Stats.open(f"{place.name}/stats") == stats
    True
    """

    of: str  # the files or the log
    schema: Mapping[str, Any]  # its document
    events: int  # valid ones
    dead: int  # invalid rows, which count nowhere else
    attributes: Mapping[str, AttributeStats]
    predicates: Mapping[str, PredicateStats] = field(default_factory=dict)  # by text
    subscriptions: SubscriptionStats | None = None
    first: LogPosition | None = None  # if the events are from a log
    last: LogPosition | None = None
    reason: str | None = None  # why one of the dead rows is invalid
    seed: int = 0  # of the sample
    made: str = ""  # the time
    sample: pa.Table = field(default_factory=lambda: pa.table({}))

    @property
    def known(self) -> dict[str, PredicateEstimate]:
        """Answers and costs for schedulers to begin with; costs are in milliseconds."""
        from tamis.schedule.statistics import PredicateEstimate

        return {
            text: PredicateEstimate(each.share, 1000 * each.seconds, each.seen)
            for text, each in self.predicates.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but the sample, as a document."""
        document = asdict(replace_fields(self, sample=pa.table({})))  # or it would be copied
        del document["sample"]
        return document

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save to a folder; with `replace`, statistics that are there are replaced."""
        target = check_free(folder, replace=replace)
        document = self.to_dict() | {"format": FORMAT}
        with os_errors_as(StoreError, f"{target}: cannot be written"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(target, replace=target.exists()) as draft:
                parquet.write_table(self.sample, draft / SAMPLE)
                write_json(draft / DOCUMENT, document)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Stats:
        """Open the statistics in a folder; a `StoreError` says what is there instead."""
        path = Path(folder).absolute() / DOCUMENT
        document = read_json(path, "statistics", StoreError, newest=FORMAT)
        del document["format"]
        try:
            document["attributes"] = _each(AttributeStats, document["attributes"])
            document["predicates"] = _each(PredicateStats, document["predicates"])
            for name in ("first", "last"):
                document[name] = _one(LogPosition, document[name])
            matched = document["subscriptions"]
            if matched is not None:
                matched["most"] = tuple(TopSubscription(**each) for each in matched["most"])
                document["subscriptions"] = SubscriptionStats(**matched)
            return cls(**document, sample=_read(path.with_name(SAMPLE)))
        except (KeyError, TypeError, AttributeError) as why:
            raise StoreError(f"{path}: is damaged, its parts do not fit: {why}") from None


def check_free(folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Refuse a folder that holds other files, or statistics unless they are to be replaced."""
    target = Path(folder).absolute()
    with os_errors_as(StoreError, f"{target}: cannot be read"):
        if target.exists() and not target.is_dir():
            raise StoreError(f"{target}: is a file; statistics need a folder of their own")
        names = names_in(target) if target.exists() else set()
    if not names:
        return target
    if not names <= {DOCUMENT, SAMPLE}:
        raise StoreError(f"{target}: holds other files than statistics; choose another folder")
    if not replace:
        raise StoreError(
            f"{target}: holds statistics already; choose another folder, or replace them"
        )
    return target


def _one(kind: Any, given: Mapping[str, Any] | None) -> Any:
    """Build a record, with tuples where JSON has lists."""
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
