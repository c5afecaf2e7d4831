"""What residuals cost: a tenth of the conditions have one, beside the same without any.

Only the engine evaluates residuals, so all times go through it. The two engines take turns, as
matcher and yardstick do in the other rows. The yardstick knows predicates only: of the
subscriptions that it finds, those with a residual are verified against the semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch
from tamis.engine import Engine
from tamis.errors import TamisError
from tamis.lab.bench.matchers import COMPARED, affordable
from tamis.lab.bench.setting import PEERS, BenchSetting
from tamis.lab.instruments.matcher_runs import finish_plan
from tamis.lab.instruments.timing import fitting, repeated, timed
from tamis.lab.instruments.yardstick import Yardstick
from tamis.lab.results.records import Overhead, ResidualResult
from tamis.language import parse
from tamis.match import registry
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tamis.workload import Workload
from tamis.workload.residuals import with_residuals

_TURN = 3  # batches in a turn; their median counts
_FEW = 100  # subscriptions of the first load
_VERIFIED = 50  # subscriptions with a residual, of each compared event


class _Side(NamedTuple):
    """An engine with its events."""

    engine: Engine
    load_s: float
    all: EventBatch
    batch: EventBatch  # as many as the matcher affords

    def ids(self, batch: EventBatch) -> object:
        return self.engine.match_batch(batch).subscriptions

    @property
    def bytes_each(self) -> float:
        return (self.engine.matcher.nbytes + self.engine.residuals.nbytes) / len(self.engine)

    @property
    def matches(self) -> float:
        return len(self.engine.match_batch(self.batch).subscriptions) / len(self.batch)


class _Turn(NamedTuple):
    """Seconds an event, with residuals and without."""

    alone: tuple[float, float]
    batch: tuple[float, float]
    residuals: float  # in a batch


def measure_row(
    setting: BenchSetting,
    name: str,
    title: str,
    made: Workload,
    events: pa.Table,
    yardstick: Yardstick,
    matcher: str,
) -> Iterator[ResidualResult | str]:
    """One row of peers. The workload has predicates only; a tenth of it gets residuals."""
    where = f"{title}, {matcher}"
    texts = with_residuals(made)
    kept = pc.invert(pc.is_in(made.subscriptions.column("id"), texts.column("id")))
    others = made.subscriptions.filter(kept)
    yield f"{where}: load without residuals"
    few = [table.slice(0, _FEW) for table in (others, texts)]
    _load(setting, made, few, events, matcher)  # not timed: the first load may compile
    plain = _load(setting, made, [made.subscriptions], events, matcher)
    yield f"{where}: load"
    mixed = _load(setting, made, [others, texts], events, matcher)
    size = min(len(plain.batch), len(mixed.batch))
    both = mixed._replace(batch=mixed.all[:size]), plain._replace(batch=plain.all[:size])
    mixed, plain = both
    yield f"{where}: compare"
    verified = 0
    if registry.entry(matcher).exact:
        ranks = yardstick.encode(events.slice(0, COMPARED))
        found = [yardstick.match(event).tolist() for event in ranks]
        verify(plain, found, texts.slice(0, 0), events, matcher)
        verified = verify(mixed, found, texts, events, matcher)
    pick = _picker(setting, both)
    _turn(both, pick(0))  # not timed: the first round may compile or start threads
    turns: list[_Turn] = []
    for turn in range(setting.rounds):
        yield f"{where}: round {turn + 1} of {setting.rounds}"
        turns.append(_turn(both, pick(turn)))
    candidates = mixed.engine.matcher.match(mixed.batch)
    holding = mixed.engine.residuals.filter(mixed.batch, candidates, mixed.engine.encoder)
    yield ResidualResult(
        PEERS,
        name,
        title,
        matcher,
        len(mixed.engine),
        texts.num_rows,
        len(mixed.engine.matcher),
        mixed.matches,
        plain.matches,
        (candidates.total - holding.total) / len(mixed.batch),
        verified,
        _overhead([turn.alone for turn in turns]),
        _overhead([turn.batch for turn in turns]),
        len(mixed.batch),
        median(turn.residuals for turn in turns) * 1e6,
        mixed.load_s,
        plain.load_s,
        mixed.bytes_each,
        plain.bytes_each,
        setting.rounds,
        made.parameters,
    )


def _load(
    setting: BenchSetting,
    made: Workload,
    tables: Sequence[pa.Table],
    events: pa.Table,
    matcher: str,
) -> _Side:
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)

    def load() -> None:
        for table in tables:
            engine.subscribe_table(table)
        engine.match_batch(events.slice(0, 1))

    seconds = timed(load)
    batch = engine.encode(events)
    for _ in range(2):  # with a plan for few events it affords more, and plans for those
        some = affordable(setting, engine.matcher, batch)
        finish_plan(engine.matcher, some)
    return _Side(engine, seconds, batch, some)


def verify(
    side: _Side,
    candidates: Sequence[list[int]],
    texts: pa.Table,
    events: pa.Table,
    matcher: str,
) -> int:
    """Raise if the engine has a wrong answer; return how many residuals were verified.

    `candidates` are the subscriptions whose predicates each event satisfies. The rest of the
    conditions in `texts` is left to the semantics, for a bounded number of them.
    """
    rows = {id: row for row, id in enumerate(texts.column("id").to_pylist())}
    schema, verified = side.engine.schema, 0
    given = zip(candidates, events.slice(0, COMPARED).to_pylist(), strict=True)
    for (number, (ids, event)), found in zip(
        enumerate(given), side.engine.match_batch(side.all[:COMPARED]), strict=True
    ):
        asked = [id for id in ids if id in rows]
        wrong = {
            id
            for id in asked[:_VERIFIED]
            if not satisfies(
                parse(texts.column("condition")[rows[id]].as_py()), schema.event(event), schema
            )
        }
        wrong |= set(asked[_VERIFIED:]) - set(found)  # not verified
        if sorted(found) != [id for id in ids if id not in wrong]:
            raise TamisError(f"matcher {matcher!r} and the semantics disagree on event {number}")
        verified += len(asked[:_VERIFIED])
    return verified


def _picker(setting: BenchSetting, both: tuple[_Side, _Side]) -> Callable[[int], NDArray[np.int64]]:
    """Chooses the single events of a round: as many as both engines match in their time."""
    most = len(both[0].all)
    number = min(
        fitting(partial(side.ids, side.all[:1]), most=most, budget=setting.seconds) for side in both
    )
    order = np.random.default_rng(setting.seed).permutation(most)
    return lambda turn: order[(turn * number + np.arange(number)) % most]


def _turn(both: tuple[_Side, _Side], picked: NDArray[np.int64]) -> _Turn:
    mixed, plain = both
    singles = [[side.all[at : at + 1] for at in picked.tolist()] for side in both]
    candidates = mixed.engine.matcher.match(mixed.batch)
    holding = partial(mixed.engine.residuals.filter, mixed.batch, candidates, mixed.engine.encoder)
    return _Turn(
        (_alone(mixed, singles[0]), _alone(plain, singles[1])),
        (_batched(mixed), _batched(plain)),
        repeated(holding, repeats=_TURN, budget=60.0).seconds / len(mixed.batch),
    )


def _alone(side: _Side, singles: Sequence[EventBatch]) -> float:
    return float(np.mean([timed(partial(side.ids, single)) for single in singles]))


def _batched(side: _Side) -> float:
    run = partial(side.ids, side.batch)
    return repeated(run, repeats=_TURN, budget=60.0).seconds / len(side.batch)


def _overhead(turns: Sequence[tuple[float, float]]) -> Overhead:
    times = [mixed / plain for mixed, plain in turns]
    return Overhead(
        median(mixed for mixed, _ in turns) * 1e6,
        median(plain for _, plain in turns) * 1e6,
        median(times),
        min(times),
        max(times),
    )
