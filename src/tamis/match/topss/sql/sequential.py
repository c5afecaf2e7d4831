"""Matching inside a database by sequential search."""

from __future__ import annotations

from tamis.match.topss.sql.matcher import SqlMatcher


class SqlSequential(SqlMatcher):
    """Store one row per predicate of each subscription; a statement compares them all and counts.

    The event's values are joined with the rows on the attribute. The rows that hold are counted per
    subscription. A subscription matches when its count reaches its number of predicates.

    add, remove: one database transaction; match O(predicates of all subscriptions), at the speed of
    a join and a grouping.

    TOPSS (2002), section 4.1. The paper generates a statement for each event, as
    `statement="per-event"` does; we join with a table of the batch's events, so that one statement
    serves all. The paper counts the rows of each
    subscription again for every event; our rows store that number. We fix a misplaced parenthesis
    in the paper, which would make an equality hold for any attribute. It is slower than `scan`: it
    makes the same comparisons, but every result goes through a hash table before a subscription can
    be ruled out.
    """

    file = "sequential"
    counts_twice = True
