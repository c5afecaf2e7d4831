"""Generators of the papers' workloads, and of two of our own.

    >>> from tamis import workload
    >>> dexin = workload.make("dexin", 1000, seed=7, attributes=4)
    >>> dexin.subscriptions.num_rows, dexin.events(10).column_names
    (1000, ['a1', 'a2', 'a3', 'a4'])

Each workload is a file; its docstring names the paper and section, what they leave open, and what
was chosen. The workload of expensive operators has predicates without attributes, and so a form of
its own: `tamis.workload.liu.make`.
"""

from __future__ import annotations

from typing import Any

from tamis.errors import TamisError
from tamis.workload import auctions, dexin, gryphon, lesubscribe, sparse, topss
from tamis.workload.base import Workload, WorkloadGenerator, look_up
from tamis.workload.liu import OperatorWorkload
from tamis.workload.tables import as_dicts
from tamis.workload.variants import VARIANTS, variant

__all__ = [
    "VARIANTS",
    "WORKLOADS",
    "OperatorWorkload",
    "Workload",
    "WorkloadGenerator",
    "as_dicts",
    "make",
    "make_variant",
    "names",
    "variant",
]

WORKLOADS: dict[str, WorkloadGenerator] = {
    "auctions": WorkloadGenerator(auctions.make, "a demonstration, conditions as text"),
    "dexin": WorkloadGenerator(dexin.make, "DEXIN, 2016, section 4"),
    "gryphon": WorkloadGenerator(gryphon.make, "Gryphon's matching tree, PODC 1999"),
    "lesubscribe": WorkloadGenerator(lesubscribe.make, "Le Subscribe, 2000, section 4"),
    "sparse": WorkloadGenerator(sparse.make, "thousands of attributes, few bound"),
    "topss": WorkloadGenerator(topss.make, "TOPSS, 2002, section 5.1"),
}


def names() -> list[str]:
    """The names that `make` takes."""
    return list(WORKLOADS)


def make(name: str, n: int, *, seed: int = 0, **parameters: Any) -> Workload:
    """A workload of `n` subscriptions; `parameters` go to the `make` of its file."""
    if name == "liu":
        raise TamisError("liu's predicates have no attributes: call tamis.workload.liu.make")
    return look_up(WORKLOADS, name, parameters).make(n, seed=seed, **parameters)


def make_variant(name: str, n: int, *, seed: int = 0) -> Workload:
    """A workload of `n` subscriptions, by its name in `VARIANTS`."""
    found = variant(name)
    return make(found.workload, n, seed=seed, **found.parameters)
