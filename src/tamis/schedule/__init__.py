"""The order of expensive operators: what to evaluate next, so that few have to be.

Integers only: clauses of literals over numbered predicates, no names and no functions. `registry`
knows the schedulers by name.
"""
