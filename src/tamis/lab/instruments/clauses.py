"""Subscriptions as clauses for a matcher, without ids and without an engine."""

from __future__ import annotations

import pyarrow as pa

from tamis.encode.bulk_terms import BulkTerms
from tamis.encode.encoder import EncodedClauses, Encoder
from tamis.language.limits import PREDICATE_LIMIT


def clauses(encoder: Encoder, subscriptions: pa.Table) -> EncodedClauses:
    """The clauses of a table of predicates, one for each row, and the labels that moved."""
    column = subscriptions.column("predicates").combine_chunks()
    assert isinstance(column, pa.ListArray)
    bulk = BulkTerms(encoder, column, PREDICATE_LIMIT)
    assert not len(bulk.slow), "a row that needs the text parser may have several clauses"
    moved = encoder.count_texts(bulk.text_uses())
    return EncodedClauses(bulk.terms(), moved)
