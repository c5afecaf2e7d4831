"""The workloads of TOPSS (Ashayer, Leung, Jacobsen, Toronto 2002), section 5.1: W0 to W4.

A subscription has 1 to `predicates` predicates (uniform) over different attributes; an event binds
`pairs` attributes; values are uniform over the attribute's domain.

What the paper leaves open, and the choices made here:

- *Comparators.* `=`, `!=`, `<` and `>`, uniform. The memory stated for the bit matrix under W4
  fits 10 attributes × 4 comparators × 10 values = 400 predicates, so it is these four.
- *Different attributes* within a subscription: the paper does not say whether one attribute may
  occur twice. A repeated one would often contradict itself, so it may not.
- *W3, "a unified mixture of W0, W1 and W2"*: an attribute must keep one domain (the table-based
  scheme allots its table by it), so the domains are dealt to the attributes in turn, 40 each.
- *The ends of a domain.* `a1 < 1` never holds over [1, 10]. Such predicates are among the paper's
  400 and are kept; the schema's domain is two values wider at each end, so that loading them is
  not refused as never true, and values below or above stay a range: if it were a single value,
  `a1 < 1` would be folded to an equality, and `a1 != 1` to an equality and a range.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import TamisError, nearest
from tamis.workload.base import Workload, attribute_names, plain_schema
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Ints,
    distinct,
    first,
    require,
    require_count,
    root,
    stream,
)
from tamis.workload.tables import COMPARATORS, EQ, GT, LT, NE, events_table, subscriptions_table


@dataclass(frozen=True)
class TopssSetting:
    """A row of the paper's table of settings.

    `domains` are dealt to the attributes in turn. The batch sizes are how many subscriptions and
    events the paper submits at once; they do not change the draws.
    """

    attributes: int
    predicates: int
    pairs: int
    domains: tuple[tuple[int, int], ...]
    subscription_batch: int
    event_batch: int

    def bounds(self) -> Ints:
        """Lowest and highest value of each attribute, as two rows."""
        turn = np.arange(self.attributes) % len(self.domains)
        return np.array(self.domains, dtype=np.int64)[turn].T

    def names(self) -> list[str]:
        return attribute_names(self.attributes)


_COMPARATORS = np.array([EQ, NE, LT, GT], dtype=np.int8)
_SMALL, _MEDIUM, _BIG = (1, 250), (250, 10_000), (10_000, 100_000)
SETTINGS = {
    "W0": TopssSetting(120, 20, 120, (_SMALL,), 120, 100),
    "W1": TopssSetting(120, 20, 120, (_MEDIUM,), 120, 100),
    "W2": TopssSetting(120, 20, 120, (_BIG,), 120, 100),
    "W3": TopssSetting(120, 20, 120, (_SMALL, _MEDIUM, _BIG), 120, 100),
    "W4": TopssSetting(10, 5, 10, ((1, 10),), 10, 10),
}


def make(n: int, *, seed: int = 0, setting: str | TopssSetting = "W4") -> Workload:
    """`n` subscriptions of one of TOPSS's workloads.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        setting: W0 to W3 (predicate evaluation, figure 2), W4 (counting, figures 3 and 4 and both
            tables), or a `TopssSetting` of your own.
    """
    require_count(n)
    chosen = _setting(setting)
    drawn = _draw(n, seed, chosen)
    return _workload(drawn, seed, chosen, {"n": n, "setting": _recorded(setting)})


def make_predicates(
    predicates: int, *, seed: int = 0, setting: str | TopssSetting = "W3"
) -> Workload:
    """As many subscriptions as have this many distinct predicates, or a few more.

    Figure 2 has the number of predicates in the system on its axis. The last subscription may have
    more new predicates than are missing. Raises if the setting has too few different predicates.

    Args:
        predicates: number of distinct predicates, at most nine in ten of those that there are.
        seed: the same seed gives the same workload.
        setting: W0 to W4, or a `TopssSetting` of your own.
    """
    require(predicates >= 1, f"the number of predicates is 1 or more, got {predicates}")
    chosen = _setting(setting)
    low, high = chosen.bounds()
    different = len(_COMPARATORS) * (high - low + 1)  # by attribute
    if predicates > 0.9 * different.sum():
        raise TamisError(
            f"a setting with {different.sum():,} different predicates cannot be expected to draw "
            f"{predicates:,} of them; ask for at most nine in ten"
        )
    mean = (1 + chosen.predicates) / 2

    def missing(n: float) -> float:
        drawn = n * mean / chosen.attributes  # on each attribute
        return float(predicates - (different * -np.expm1(-drawn / different)).sum())

    n = int(1.05 * root(missing, 0, 20 * different.sum())) + 20
    while True:
        drawn = _draw(n, seed, chosen)
        seen = drawn.first_occurrences()
        if len(seen) >= predicates:
            break
        n *= 2
    ends = np.cumsum(drawn.lengths)
    kept = int(np.searchsorted(ends, seen[predicates - 1], side="right")) + 1
    return _workload(
        drawn.beginning(kept),
        seed,
        chosen,
        {"n": kept, "predicates": predicates, "setting": _recorded(setting)},
    )


class _DrawnPredicates(NamedTuple):
    """Subscriptions with `lengths[i]` predicates each, one after the other."""

    lengths: Ints
    attribute: Ints
    comparator: Ints
    value: Ints

    def first_occurrences(self) -> Ints:
        """Where each distinct predicate occurs for the first time, ascending."""
        width = int(self.value.max()) + 1
        number = (self.attribute.astype(np.int64) * len(COMPARATORS) + self.comparator) * width
        return np.sort(np.unique(number + self.value, return_index=True)[1])

    def beginning(self, n: int) -> _DrawnPredicates:
        """The first n subscriptions."""
        predicates = int(self.lengths[:n].sum())
        return _DrawnPredicates(self.lengths[:n], *(column[:predicates] for column in self[1:]))


def _draw(n: int, seed: int, setting: TopssSetting) -> _DrawnPredicates:
    rng = stream(seed, SUBSCRIPTIONS)
    k = setting.predicates
    lengths = rng.integers(1, k, size=n, endpoint=True)
    kept = first(lengths, k)
    attribute = distinct(rng, n, k, partial(_any, setting.attributes))[kept]
    low, high = setting.bounds()
    value = rng.integers(low[attribute], high[attribute], endpoint=True)
    return _DrawnPredicates(lengths, attribute, rng.choice(_COMPARATORS, size=len(value)), value)


def _workload(
    drawn: _DrawnPredicates, seed: int, setting: TopssSetting, parameters: dict[str, Any]
) -> Workload:
    table = subscriptions_table(
        drawn.lengths,
        setting.names(),
        drawn.attribute,
        drawn.comparator,
        drawn.value.astype(np.float64),
    )
    draw = partial(_events, setting=setting)
    return Workload("topss", _schema(setting), table, seed, parameters, draw)


def _recorded(setting: str | TopssSetting) -> Any:
    return setting if isinstance(setting, str) else asdict(setting)


def _setting(setting: str | TopssSetting) -> TopssSetting:
    if isinstance(setting, str):
        if setting not in SETTINGS:
            hint = nearest(setting, SETTINGS)
            raise TamisError(f"TOPSS has no setting {setting!r}; {hint}")
        return SETTINGS[setting]
    within = 1 <= setting.predicates <= setting.attributes and setting.pairs <= setting.attributes
    require(within, "a TOPSS setting has at most as many predicates and pairs as attributes")
    return setting


def _any(attributes: int, rng: np.random.Generator, size: int) -> Ints:
    return rng.integers(attributes, size=size, dtype=np.int32)


def _events(rng: np.random.Generator, n: int, *, setting: TopssSetting) -> pa.Table:
    absent = np.zeros((n, setting.attributes), dtype=np.bool_)
    if setting.pairs < setting.attributes:
        absent[:] = True
        bound = distinct(rng, n, setting.pairs, partial(_any, setting.attributes))
        np.put_along_axis(absent, bound, False, axis=1)
    columns: dict[str, Any] = {}
    for place, (name, low, high) in enumerate(zip(setting.names(), *setting.bounds(), strict=True)):
        drawn = rng.integers(low, high, size=n, endpoint=True)
        columns[name] = pa.array(drawn, mask=absent[:, place])
    return events_table(columns)


def _schema(setting: TopssSetting) -> dict[str, Any]:
    kinds = {
        name: {"kind": "integer", "low": int(low) - 2, "high": int(high) + 2}
        for name, low, high in zip(setting.names(), *setting.bounds(), strict=True)
    }
    # The paper does not require a publication to bind all attributes of its type.
    return plain_schema(kinds, "optional")
