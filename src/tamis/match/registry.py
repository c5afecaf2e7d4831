"""The table of matchers. A new matcher is one file and one line here.

Users register their own with `register`. The conformance suite, the engine and the command line
then find it by name. Reading the table imports neither a matcher nor the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import MatcherError
from tamis.registry import Registry

if TYPE_CHECKING:
    from tamis.match.base import Matcher


class MatcherEntry(NamedTuple):
    """The description of a matcher, readable without importing it. Its class declares options."""

    name: str
    path: str  # module:class, imported when used
    paper: str
    idea: str
    exact: bool = True
    trials: tuple[Mapping[str, Any], ...] = ({},)  # options under which it is tested
    effort: float = 1.0  # share of the random tests to run; less for an inherently slow matcher


_TABLE: dict[str, MatcherEntry] = {
    entry.name: entry
    for entry in (
        MatcherEntry(
            "tamis",
            "tamis.match.default.matcher:Tamis",
            "none: the default",
            "each clause where its expected cost is lowest: hashed values, hashed cells or bitmaps",
            trials=({}, {"threads": 2}),
        ),
        MatcherEntry(
            "naive",
            "tamis.match.lesubscribe.naive:Naive",
            "Le Subscribe, figure 1",
            "test every clause, predicate by predicate, until one is false",
        ),
        MatcherEntry(
            "scan",
            "tamis.match.scan:Scan",
            "none: the baseline",
            "columns of bounds, narrowed attribute by attribute in cache-sized tiles",
        ),
        MatcherEntry(
            "tamis-gpu",
            "tamis.match.gpu.matcher:TamisGpu",
            "none: for CUDA GPUs",
            "lines of bits by attribute and cell in shared memory, combined for a whole batch",
        ),
        MatcherEntry(
            "fair-predicate",
            "tamis.match.lesubscribe.fair_predicate:FairPredicate",
            "Le Subscribe, figure 2",
            "count the satisfied predicates of every subscription",
            trials=({}, {"final": "all"}),
        ),
        MatcherEntry(
            "equality-preferred",
            "tamis.match.lesubscribe.equality_preferred:EqualityPreferred",
            "Le Subscribe, figure 4",
            "look up the equalities of subscriptions together, count their other predicates",
            trials=({}, {"final": "all", "schemas": "subsets"}),
        ),
        MatcherEntry(
            "quarantine",
            "tamis.match.lesubscribe.quarantine:Quarantine",
            "Le Subscribe, figure 5",
            "look up equalities and verify the rest; count only subscriptions without equalities",
            trials=({}, {"final": "all", "schemas": "subsets"}),
        ),
        MatcherEntry(
            "neon",
            "tamis.match.lesubscribe.neon:Neon",
            "Le Subscribe, figure 8",
            "evaluate every predicate on the event's attributes, and count",
            trials=(
                {},
                {"value_index": True},
                {"event_type": 0},
                {"event_type": 1, "value_index": True},
            ),
        ),
        MatcherEntry(
            "be-tree",
            "tamis.match.dexin.be_tree.matcher:BETree",
            "BE-Tree, SIGMOD 2011 and TODS 2013",
            "space cut by attribute and by value in turns, adjusted to the data",
            trials=({}, {"capacity": 3, "window": 5}, {"capacity": 1, "min_partition": 1}),
        ),
        MatcherEntry(
            "rein",
            "tamis.match.dexin.rein:Rein",
            "Qian et al., INFOCOM 2014",
            "mark what each attribute rules out, in buckets of interval ends",
            trials=({}, {"buckets": 1}, {"buckets": 7, "edges": "equal-width"}),
        ),
        MatcherEntry(
            "dexin",
            "tamis.match.dexin.dexin:Dexin",
            "DEXIN, algorithms 1 to 4",
            "rule out by some attributes, check the rest on the others, planned by cost",
            trials=(
                {},
                {"plan": "optimal", "slots": 4},
                {"plan": "exclusive", "slots": 1},
                {"plan": "inclusive", "boundary": "exact"},
                {"plan": "exclusive", "slots": 7, "ends": "linked", "edges": "equal-width"},
                {"ends": "linked"},
            ),
        ),
        MatcherEntry(
            "tama",
            "tamis.match.dexin.tama:Tama",
            "TAMA, ICDCS 2011",
            "count the cells of a hierarchical partition that contain the event",
            exact=False,
            trials=(
                {"exact": True},
                {"exact": True, "levels": 3},
                {"exact": True, "levels": 1},
                {"exact": True, "levels": 4, "edges": "equal-width"},
            ),
        ),
        MatcherEntry(
            "hanson",
            "tamis.match.lesubscribe.hanson:Hanson",
            "Le Subscribe, figure 6; Hanson et al., SIGMOD 1990",
            "the most selective predicate of each subscription in an interval tree",
            trials=({}, {"access": "first"}),
        ),
        MatcherEntry(
            "counting-byte",
            "tamis.match.topss.counting_byte:CountingByte",
            "TOPSS, sections 3.3 and 5.1.2",
            "satisfied predicates in a bit vector; add up rows of a byte matrix",
            trials=({}, {"predicates": "ordered-list"}, {"domain": 4, "skip_empty": False}),
        ),
        MatcherEntry(
            "counting-bit",
            "tamis.match.topss.counting_bit:CountingBit",
            "TOPSS, section 3.3",
            "satisfied predicates in a bit vector; count along rows of a bit matrix",
            trials=(
                {},
                {"predicates": "ordered-list", "search": "linear"},
                {"domain": 4},
                {"counters": "bytes", "domain": 100_001, "skip_empty": False},
            ),
        ),
        MatcherEntry(
            "counting-list",
            "tamis.match.topss.counting_list:CountingList",
            "TOPSS, section 3.3",
            "satisfied predicates in a bit vector; count along lists of subscriptions",
            trials=(
                {},
                {"domain": 1, "grow": "constant"},
                {"predicates": "ordered-list"},
                {"predicates": "ordered-list", "search": "linear"},
            ),
        ),
        MatcherEntry(
            "opindex",
            "tamis.match.dexin.opindex:OpIndex",
            "OpIndex, VLDB 2014",
            "predicates under the rarest attribute of their clause, by comparator and attribute",
            trials=({}, {"segments": 1, "signature": 3}),
        ),
        MatcherEntry(
            "gough",
            "tamis.match.lesubscribe.gough:Gough",
            "Le Subscribe, figure 3; Gough and Smith, ACSC 1995",
            "a decision graph in which an event follows one path",
            trials=(
                {"max_nodes": 20_000},
                {"max_nodes": 50, "order": "schema"},
                {"max_nodes": 2_000, "memo": False, "order": (5, 3)},
            ),
        ),
        MatcherEntry(
            "h-tree",
            "tamis.match.dexin.h_tree:HTree",
            "H-Tree, TPDS 2015",
            "a tree of overlapping cells over a few attributes; wide clauses are cloned",
            trials=(
                {},
                {"attributes": 1, "cells": 3, "overlap": 1},
                {"attributes": 6, "cells": 9, "overlap": 0, "max_clones": 7},
                {"attributes": 3, "cells": 4, "max_clones": 0, "edges": "equal-width"},
            ),
        ),
        MatcherEntry(
            "sql-sequential",
            "tamis.match.topss.sql.sequential:SqlSequential",
            "TOPSS, section 4.1",
            "a row for each predicate in a database; one statement compares and counts",
            trials=(
                {},
                {"database": "postgresql"},
                {"statement": "per-event"},
                {"database": "postgresql", "statement": "per-event"},
            ),
            effort=0.2,
        ),
        MatcherEntry(
            "sql-grouping",
            "tamis.match.topss.sql.grouping:SqlGrouping",
            "TOPSS, section 4.2",
            "each distinct predicate once in a database, with its subscriptions",
            trials=(
                {},
                {"database": "postgresql"},
                {"statement": "per-event"},
                {"database": "postgresql", "statement": "per-event"},
            ),
            effort=0.2,
        ),
        MatcherEntry(
            "aguilera",
            "tamis.match.gryphon.aguilera:Aguilera",
            "Gryphon's matching tree, sections 3 to 5; Le Subscribe, figure 7",
            "a tree of tests: follow the edges that agree with the event, and the stars",
            trials=(
                {},
                {"collapse": True, "successors": True},
                {"successors": True, "aggressive": True, "factor": 1, "replication": 20},
                {"factor": 2, "replication": 150},
                {"tree": "equality"},
                {"tree": "equality", "collapse": True},
                {"tree": "equality", "successors": True, "aggressive": True},
                {"tree": "equality", "collapse": True, "successors": True},
                {"tree": "equality", "factor": 1, "replication": 20},
                {"tree": "equality", "factor": 2, "replication": 150, "collapse": True},
                {"tree": "equality", "factor": 1, "replication": 20, "successors": True},
                {
                    "tree": "equality",
                    "factor": 2,
                    "replication": 150,
                    "collapse": True,
                    "successors": True,
                    "aggressive": True,
                },
            ),
        ),
    )
}


_REGISTRY = Registry("matcher", MatcherError, _TABLE)
matchers, entry, register = _REGISTRY.names, _REGISTRY.entry, _REGISTRY.register


def matcher_class(name: str) -> type[Matcher]:
    """The class of a matcher. Imported on first use."""
    found: type[Matcher] = _REGISTRY.load(name)
    return found


def create(name: str, **options: Any) -> Matcher:
    """Create a matcher by name."""
    return matcher_class(name)(**options)


def name_of(matcher: Matcher) -> str | None:
    """The name under which a matcher's class is registered, or None."""
    kind = type(matcher)
    for name, known in _TABLE.items():
        # The registered path may name a module that re-exports the class.
        if known.path.endswith(f":{kind.__qualname__}") and matcher_class(name) is kind:
            return name
    return None
