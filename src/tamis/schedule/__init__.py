"""The order of expensive operators: which to evaluate next, so that few have to be.

Integers only: clauses of literals over numbered predicates, without names or functions. `registry`
lists the schedulers by name; `PythonScheduler` is the base class for one of your own.
"""
