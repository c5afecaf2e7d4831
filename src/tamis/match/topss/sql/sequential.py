"""Matching inside a database, by sequential search."""

from __future__ import annotations

from tamis.match.topss.sql.matcher import SqlMatcher


class SqlSequential(SqlMatcher):
    """One row for each predicate of each subscription; a statement compares them all and counts.

    The event's values are joined with the rows on the attribute; the rows that hold are counted for
    each subscription, and those that reach its number of predicates match.

    add, remove: a transaction of the database; match O(predicates of all subscriptions), at the
    speed of a join and a grouping.
    TOPSS (2002), section 4.1. The paper generates a statement for each event; we join with a table
    of the batch's events, so that one statement serves all. It counts each subscription's rows
    anew for every event; ours carry that number. Its misplaced parenthesis, which would make an
    equality hold for any attribute, is mended. It must lose to `scan`: the same comparisons, but
    each result goes through a hash table before a subscription can be given up.
    """

    file = "sequential"
    counts_twice = True
