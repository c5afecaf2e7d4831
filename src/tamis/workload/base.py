"""What a workload is, and the table of all of them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import TamisError, nearest
from tamis.workload.draw import EVENTS, require, stream


@dataclass(frozen=True, eq=False)
class Workload:
    """Subscriptions, and a source of events to match against them.

    `schema` is the document form of the event schema. `subscriptions` is a table of `id` and
    `predicates` (see `tamis.workload.tables`), or of `id` and `condition` where they are written
    in the language. `parameters` holds every parameter, the defaults included, so that a result
    can say what produced it: the same name, seed and parameters give the same tables again.
    """

    name: str
    schema: dict[str, Any]
    subscriptions: pa.Table
    seed: int
    parameters: dict[str, Any]
    draw: Callable[[np.random.Generator, int], pa.Table] = field(repr=False)

    def events(self, n: int, seed: int | None = None) -> pa.Table:
        """`n` events, drawn independently of the subscriptions.

        The same call gives the same events; another `seed` gives others, as does another `n`
        (the first ten of twenty events are not the ten of `events(10)`).
        """
        require(n >= 0, f"the number of events is 0 or more, got {n}")
        path = (EVENTS,) if seed is None else (EVENTS, seed)
        return self.draw(stream(self.seed, *path), n)


def plain_schema(attributes: dict[str, Any], use: str) -> dict[str, Any]:
    """The schema of one event type, `event`, whose attributes are all used alike.

    With a single event type, events need not say which one they are.
    """
    return {"attributes": attributes, "event_types": {"event": dict.fromkeys(attributes, use)}}


@dataclass(frozen=True)
class Recipe:
    """One line of the table of workloads: how to make it, and where it comes from."""

    make: Callable[..., Workload]
    source: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that `make` takes beside n and seed, with their defaults."""
        given = inspect.signature(self.make).parameters
        return {name: p.default for name, p in given.items() if name not in ("n", "seed")}


def look_up(recipes: dict[str, Recipe], name: str, parameters: dict[str, Any]) -> Recipe:
    """The recipe called `name`, once it is known to take all of `parameters`."""
    recipe = recipes.get(name)
    if recipe is None:
        raise TamisError(_unknown(f"unknown workload {name!r}", name, recipes))
    for parameter in parameters:
        if parameter not in recipe.parameters:
            what = f"workload {name!r} has no parameter {parameter!r}"
            raise TamisError(_unknown(what, parameter, recipe.parameters))
    return recipe


def _unknown(what: str, name: str, known: dict[str, Any]) -> str:
    hint = nearest(name, known) or "known here: " + ", ".join(sorted(known))
    return f"{what}; {hint}"
