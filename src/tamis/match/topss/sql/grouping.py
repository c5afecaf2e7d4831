"""Matching inside a database by predicate grouping."""

from __future__ import annotations

from tamis.match.topss.sql.matcher import SqlMatcher


class SqlGrouping(SqlMatcher):
    """Store each distinct predicate once; a second table associates predicates and subscriptions.

    One join finds the distinct predicates that the event's values satisfy. Another join with the
    associations counts them per subscription. A subscription matches when its count reaches its
    number of predicates.

    add, remove: one database transaction; match O(distinct predicates + associations of the
    satisfied ones), at the speed of two joins and a grouping.

    TOPSS (2002), section 4.2. As in `sql-sequential`, events are passed as a table; the paper
    writes them into the statement, as `statement="per-event"` does. PostgreSQL has indexes on
    attribute, comparator and value and on the associations; DuckDB uses hash joins and would not
    use such indexes. It is slower than `counting-list`, which is the same plan without a database,
    and than `sql-sequential` when few subscriptions share a predicate.
    """

    file = "grouping"
    counts_twice = False
