"""From conditions to the redundancy report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.engine.ids import Id
from tamis.engine.redundancy.canonical_clauses import CanonicalClauses, ClauseForms
from tamis.engine.redundancy.collected_clauses import ClauseCollector, CollectedClauses
from tamis.engine.redundancy.consistent_events import ConsistentEvents
from tamis.engine.redundancy.cover_search import CoverSearch
from tamis.engine.redundancy.redundancy_report import (
    CoveredSubscription,
    Progress,
    RedundancyReport,
)
from tamis.engine.redundancy.subscription_classes import SubscriptionClasses, classes_of
from tamis.files.arrays import Int64s

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

TOO_LONG = "the search took too many steps"


def of_engine(engine: Engine, progress: Progress | None) -> RedundancyReport:
    """The report on the subscriptions of an engine, which does not change."""
    report = progress or _silent
    collector = ClauseCollector(_scratch(engine))
    for ids, column in engine.slot_table.columns():
        collector.add(
            ids,
            column,
            stored=True,
            progress=lambda done: report("Reading conditions", done, len(engine)),
        )
    found, _ = find_redundancy(collector, report)
    return found


def of_table(
    engine: Engine, table: pa.Table, progress: Progress | None, *, stored: bool = False
) -> tuple[RedundancyReport, list[tuple[int, str]]]:
    """The report on a table of subscriptions, and its rows that are no conditions.

    The table has `id`, and `condition` or `predicates`, perhaps `language`. The engine gives the
    schema and the operators; it does not change. `stored` conditions were accepted before: what
    looks like a mistake in new ones is not refused.
    """
    report = progress or _silent
    names = table.column_names
    languages = table["language"].to_pylist() if "language" in names else None
    column = table["condition" if "condition" in names else "predicates"].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    collector = ClauseCollector(_scratch(engine))
    collector.add(
        table["id"].to_pylist(),
        column,
        languages,
        stored=stored,
        progress=lambda done: report("Reading conditions", done, table.num_rows),
    )
    return find_redundancy(collector, report)


def _silent(what: str, done: int, total: int) -> None:
    """No progress."""


def _scratch(engine: Engine) -> Engine:
    """An engine to compile with: labels and numbers of elements are its own."""
    return type(engine)(engine.schema, "scan", operators=engine.calls.operators)


def find_redundancy(
    collector: ClauseCollector, progress: Progress
) -> tuple[RedundancyReport, list[tuple[int, str]]]:
    """Compare the conditions that a collector holds."""
    collected = collector.collected()
    events = ConsistentEvents(collector.encoder)
    many, clauses = len(collected.ids), len(collected.owner)
    forms = ClauseForms(events, collected)
    canonical = forms.canonical(lambda done: progress("Normal forms", done, clauses))
    spans = _spans(events, collected)
    progress("Finding duplicates", 0, many)
    classes = classes_of(many, canonical, spans)
    search = CoverSearch(forms, canonical, classes, spans, set())
    always = _always_true(search, canonical)
    search.left_out |= always
    covers = search.covers(progress)
    return _report(collected, classes, search, always, covers), collected.refused


def _spans(events: ConsistentEvents, collected: CollectedClauses) -> Int64s:
    """The lowest and the highest code of each attribute: real, missing, and marks."""
    ends = [(codes.bottom, codes.top) for codes in events.codes]
    found = [*ends, *((0, 0) for _ in ends)]
    found += [ends[of] if of >= 0 else (0, 0) for of in collected.marked.values()]
    return np.array(found, np.int64).reshape(-1, 2)


def _always_true(search: CoverSearch, canonical: CanonicalClauses) -> set[int]:
    classes, found = search.classes, set()
    sizes = np.diff(canonical.own.starts)
    for each in np.flatnonzero(~classes.single).tolist():
        if search.always_true(each):
            found.add(each)
    leads = classes.clauses[classes.starts[:-1]]
    free = classes.single & (sizes[leads] == 0) if len(leads) else classes.single
    return found | set(np.flatnonzero(free).tolist())


def _without_circles(search: CoverSearch, covers: dict[int, int]) -> dict[int, int]:
    """Covers between the classes that stand for others, without circles.

    Classes that cover each other in turn match the same events. They were joined already, unless
    that took too many steps.
    """
    while True:
        found: dict[int, int] = {}
        for each, by in covers.items():
            if search.lead(each) != search.lead(by):
                found.setdefault(search.lead(each), search.lead(by))
        done: set[int] = set()
        joined = False
        for start in found:
            path: dict[int, None] = {}
            at = start
            while at in found and at not in done and at not in path:
                path[at] = None
                at = found[at]
            if at in path:
                joined = True
                for each in [*path][[*path].index(at) :]:
                    search.join(at, each)
            done.update(path)
        if not joined:
            return found


def _report(
    collected: CollectedClauses,
    classes: SubscriptionClasses,
    search: CoverSearch,
    always: set[int],
    covers: dict[int, int],
) -> RedundancyReport:
    """The report, by the ids of subscriptions."""
    ids = collected.ids
    covers = _without_circles(search, covers)
    stands = np.arange(len(classes.first) + 1)
    stands[[*search.stands]] = [search.lead(each) for each in search.stands]
    stands[-1] = -1  # of those without a class
    of = stands[classes.of]
    order = np.argsort(of, kind="stable")
    begins = np.searchsorted(of[order], np.arange(len(classes.first) + 1))

    def members(each: int) -> list[Id]:
        return [ids[place] for place in order[begins[each] : begins[each + 1]].tolist()]

    roots: dict[int, int] = {}
    for each in covers:
        path, at = [], each
        while at in covers and at not in roots:
            path.append(at)
            at = covers[at]
        root = roots.get(at, at)
        roots.update(dict.fromkeys(path, root))
    covered = [
        CoveredSubscription(id, ids[order[begins[root]]])
        for each, root in sorted(roots.items())
        for id in members(each)
    ]
    wrong = {place for place, _ in collected.refused}
    lost = np.flatnonzero(classes.of < 0).tolist()
    reasons: dict[str, list[Id]] = {
        reason: [ids[place] for place in places] for reason, places in collected.reasons.items()
    }
    long = [id for each in sorted({*map(search.lead, search.undecided)}) for id in members(each)]
    return RedundancyReport(
        subscriptions=len(ids) - len(wrong),
        duplicates=[
            members(each)
            for each in np.flatnonzero(np.diff(begins) > 1).tolist()
            if each not in always
        ],
        covered=covered,
        never_true=[ids[place] for place in lost if place not in wrong],
        always_true=[id for each in sorted(always) for id in members(each)],
        undecided=reasons | ({TOO_LONG: long} if long else {}),
        work={
            "clauses": len(collected.owner),
            "different subscriptions": len(classes.first),
            "clauses looked at": search.looked,
            "unions examined": search.questions,
        },
    )
