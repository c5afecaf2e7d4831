"""Engines for conditions on elements, and their numbers as saved; see `encode.elements`.

Elements are matched by the default matcher, whatever the matcher of the events: it is made for
every number of conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from tamis.encode.elements.element_conditions import FIRST, ElementConditions, ElementState
from tamis.engine.saved.saved_part import SavedPart, texts
from tamis.files.saved_checks import array_of, require, whole
from tamis.match.base import Matcher
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


def element_engine(element: Schema, matcher: Matcher | None = None) -> Engine:
    """An engine over the schema of the element."""
    from tamis.engine.engine import Engine

    return Engine(element) if matcher is None else Engine(element, matcher)


def with_element_engines(engine: Engine) -> Iterator[Engine]:
    """An engine, and those for its elements, and for theirs."""
    yield engine
    for conditions in engine.encoder.elements.values():
        if conditions.engine is not None:
            yield from with_element_engines(cast("Engine", conditions.engine))


def saved_numbers(conditions: ElementConditions) -> SavedPart:
    """The numbers of conditions on elements, to save them beside their engine."""
    state = conditions.state()
    return SavedPart(
        {"number": np.array(state.numbers, np.int64), "uses": np.array(state.uses, np.int64)},
        {"next": state.next},
        {"keys": {"key": pa.array(state.keys, pa.large_string())}},
    )


def restore_numbers(conditions: ElementConditions, engine: Engine, saved: SavedPart) -> None:
    """Restore what `saved_numbers` returned, for an engine that was restored."""
    numbers, uses = array_of(saved.arrays, "number"), array_of(saved.arrays, "uses")
    keys = texts(saved, "keys", "key")
    require(len(numbers) == len(uses) == len(keys), "each condition on elements has its uses")
    top = whole(saved.facts, "next", int(numbers.max(initial=FIRST - 1)) + 1)
    require(sorted(engine.ids()) == sorted(numbers.tolist()), "each number has a condition")
    conditions.restore(engine, ElementState(numbers.tolist(), uses.tolist(), keys.to_pylist(), top))
