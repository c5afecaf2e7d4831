"""The class `Workload`, and helpers of its generators."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import TamisError, nearest
from tamis.workload.draw import event_stream, require_count


@dataclass(frozen=True, eq=False)
class Workload:
    """Subscriptions, and a source of events to match against them.

    `schema` is the document form of the event schema. `subscriptions` is a table of `id` and
    `predicates` (see `tamis.workload.tables`), or of `id` and `condition`. `parameters` holds all
    parameters with their defaults: the same name, seed and parameters give the same tables.
    """

    name: str
    schema: dict[str, Any]
    subscriptions: pa.Table
    seed: int
    parameters: dict[str, Any]
    draw: Callable[[np.random.Generator, int], pa.Table] = field(repr=False)

    def events(self, n: int, seed: int | None = None) -> pa.Table:
        """`n` events, drawn independently of the subscriptions.

        The same call gives the same events. Another `seed` or another `n` gives other events: the
        first ten of twenty are not `events(10)`.
        """
        require_count(n, "events")
        return self.draw(event_stream(self.seed, seed), n)


def recorded(arguments: dict[str, Any]) -> dict[str, Any]:
    """The `parameters` of a workload: the arguments of its `make` without the seed."""
    return {name: value for name, value in arguments.items() if name != "seed"}


def attribute_names(count: int) -> list[str]:
    """a1, a2, …"""
    return [f"a{number}" for number in range(1, count + 1)]


def plain_schema(attributes: dict[str, Any], use: str) -> dict[str, Any]:
    """The schema of one event type, `event`, whose attributes all have the same use.

    With a single event type, events need not name it.
    """
    return {"attributes": attributes, "event_types": {"event": dict.fromkeys(attributes, use)}}


@dataclass(frozen=True)
class WorkloadGenerator:
    """A line of the table of workloads: the function, and the source in the literature."""

    make: Callable[..., Workload]
    source: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `make` without n and seed, with their defaults."""
        given = inspect.signature(self.make).parameters
        return {name: p.default for name, p in given.items() if name not in ("n", "seed")}


def look_up(
    generators: dict[str, WorkloadGenerator], name: str, parameters: dict[str, Any]
) -> WorkloadGenerator:
    """The generator called `name`. Raises if it does not take all of `parameters`."""
    found = generators.get(name)
    if found is None:
        raise TamisError(_unknown(f"unknown workload {name!r}", name, generators))
    for parameter in parameters:
        if parameter not in found.parameters:
            what = f"workload {name!r} has no parameter {parameter!r}"
            raise TamisError(_unknown(what, parameter, found.parameters))
    return found


def _unknown(what: str, name: str, known: dict[str, Any]) -> str:
    hint = nearest(name, known) or "known here: " + ", ".join(sorted(known))
    return f"{what}; {hint}"
