"""Calls of operators in clauses: interned, joined, and evaluated on the matcher's candidates."""
