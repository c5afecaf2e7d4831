"""Matching inside a database, by predicate grouping."""

from __future__ import annotations

from tamis.match.topss.sql.matcher import SqlMatcher


class SqlGrouping(SqlMatcher):
    """Each distinct predicate once, in a table of its own; a second one says who has which.

    The event's values are joined with the distinct predicates; those that hold are joined with the
    subscriptions that have them and counted, and counts that reach a subscription's number of
    predicates match.

    add, remove: a transaction of the database; match O(distinct predicates + associations of the
    satisfied ones), at the speed of two joins and a grouping.
    TOPSS (2002), section 4.2. As in `sql-sequential`, events come as a table instead of being
    written into the statement. PostgreSQL has indexes on attribute, comparator and value and on
    the associations; DuckDB joins by hashing and would not use them. It must lose to
    `counting-list`, which is the same plan without a database around it, and to `sql-sequential`
    where predicates are hardly shared.
    """

    file = "grouping"
    counts_twice = False
