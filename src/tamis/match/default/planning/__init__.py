"""Deciding where clauses go: the events seen, the cost of each step, the resulting layout."""
