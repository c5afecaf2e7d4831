"""Check and measure the matcher `tamis-gpu` on this machine's GPU.

    PYTHONPATH=src python scripts/gpu_check.py [PART …] [--device simulated] [--scale 1.0]

Parts: compile, agree, and the workloads dexin, matching, lesubscribe, large. Default: all.

It needs NumPy and CuPy. With Numba, answers are compared with `scan`; without, with the kernels in
NumPy. Each result is a line of JSON. The exit code is 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median
from typing import Any, NamedTuple

import numpy as np

try:
    import numba  # noqa: F401

    NUMBA = True
except ImportError:  # compiled functions are then plain ones, and are not called here
    NUMBA = False
    stand_in = types.ModuleType("tamis.index.kernel")
    vars(stand_in).update(kernel=lambda function: function, inlined=lambda function: function)
    sys.modules["tamis.index.kernel"] = stand_in

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Row, Terms, from_rows
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.match.answers import Matches
from tamis.match.base import Matcher
from tamis.match.gpu.kernel_device import KernelVariant
from tamis.match.gpu.matcher import TamisGpu

BATCH = 4096
BATCHES = 7  # measured, after two more
LOWEST, HIGHEST = -(2**63), 2**63 - 1
PARTS = ("compile", "agree", "dexin", "matching", "lesubscribe", "large")
failed: list[str] = []


def say(part: str, **facts: Any) -> None:
    """Print a line of results at once."""
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in facts.items()}
    print(json.dumps({"part": part, **rounded}), flush=True)


class Made(NamedTuple):
    """Intervals of clauses by attribute, and values of events. Without `present`, all are there."""

    low: Any
    high: Any
    present: Any
    values: Callable[[int], tuple[Any, Any]]  # of so many events, and which are there


def dexin(rng: np.random.Generator, n: int, matching: float = 0) -> Made:
    """The workload of DEXIN: a point or a wide range on each of ten attributes."""
    last, width = 9_999, 10
    low, high = np.empty((n, width), np.int32), np.empty((n, width), np.int32)
    published = rng.integers(0, last + 1, (max(1, int(1 / matching)) if matching else 1, width))
    owner = rng.integers(0, len(published), n)
    only = rng.integers(0, width, n)
    for attribute in range(width):
        wide = np.rint(rng.uniform(0.2, 0.8, n) * last).astype(np.int32)
        wide[rng.random(n) < 0.1] = 0
        if matching:
            wide[only == attribute] = 0
            centre = published[owner, attribute]
            begin = np.maximum(centre - wide, 0)
            end = np.minimum(centre, last - wide)
            low[:, attribute] = rng.integers(begin, end, endpoint=True)
        else:
            low[:, attribute] = rng.integers(0, last - wide, endpoint=True)
        high[:, attribute] = low[:, attribute] + wide

    def values(events: int) -> tuple[Any, Any]:
        if matching:
            return published[rng.integers(0, len(published), events)], None
        return rng.integers(0, last + 1, (events, width)), None

    return Made(low, high, None, values)


def lesubscribe(rng: np.random.Generator, n: int) -> Made:
    """The workload of Le Subscribe: six optional attributes, equalities and one-sided ranges."""
    values = np.array([200] * 3 + [5000] * 3)
    value = (rng.random((n, 6)) * values).astype(np.int64) + 1
    kind = rng.random((n, 6))
    kind[:, :3] = 0
    low = np.where(kind < 0.75, np.where(kind < 0.5, value, LOWEST), value + 1)
    high = np.where(kind < 0.5, value, np.where(kind < 0.75, value - 1, HIGHEST))
    present = rng.random((n, 6)) < 0.5
    empty = ~present.any(axis=1)
    present[empty, rng.integers(0, 6, int(empty.sum()))] = True

    def drawn(events: int) -> tuple[Any, Any]:
        shape = (events, 6)
        return (rng.random(shape) * values).astype(np.int64) + 1, rng.random(shape) < 0.5

    return Made(low, high, present, drawn)


def terms_of(made: Made) -> Terms:
    """The clauses of a workload."""
    n, width = made.low.shape
    present = np.ones((n, width), np.bool_) if made.present is None else made.present
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    attribute = np.broadcast_to(np.arange(width, dtype=np.int32), (n, width))[present]
    return Terms(
        starts, attribute, attribute.astype(np.int16), np.zeros(len(attribute), np.int8),
        made.low[present].astype(np.int64), made.high[present].astype(np.int64),
    )  # fmt: skip


def batch_of(values: Any, present: Any) -> EventBatch:
    """A batch of events that bind each attribute once, or not at all."""
    n, width = values.shape
    present = np.ones((n, width), np.bool_) if present is None else present
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    attribute = np.broadcast_to(np.arange(width, dtype=np.int32), (n, width))[present]
    return EventBatch(n, pairs=Pairs(starts, attribute, values[present].astype(np.int64)))


def expected(made: Made, values: Any, present: Any) -> Any:
    """The clauses that hold for one event, attribute by attribute."""
    left = np.arange(len(made.low))
    for attribute in range(made.low.shape[1]):
        low, high = made.low[left, attribute], made.high[left, attribute]
        inside = (low <= values[attribute]) & (values[attribute] <= high)
        if present is not None:
            inside &= bool(present[attribute])
        if made.present is not None:
            inside |= ~made.present[left, attribute]
        left = left[inside]
    return left


def random_clause(rng: np.random.Generator, attributes: int, ends: Any) -> list[Row]:
    """A clause of any shape: mostly one interval, and all rare shapes."""
    rows: list[Row] = []
    term = 0
    for attribute in np.sort(rng.permutation(attributes)[: rng.integers(0, 7)]).tolist():
        for _ in range(2 if rng.random() < 0.1 else 1):
            shape = rng.random()
            a, b, c, d = np.sort(rng.choice(ends, 4)).tolist()
            if shape < 0.08:
                rows.append((attribute, term, MISSING, 0, -1))
            elif shape < 0.15:
                rows.append((attribute, term, NONE, a, a))
            elif shape < 0.25 and b < c:
                rows += [(attribute, term, SOME, a, b), (attribute, term, SOME, c, d)]
            elif shape < 0.4:
                rows.append((attribute, term, SOME, a, a))
            else:
                rows.append((attribute, term, SOME, a, d))
            term += 1
    return rows


def random_batch(rng: np.random.Generator, events: int, attributes: int, ends: Any) -> EventBatch:
    """Events with absent, single and several values, and an attribute that no clause knows."""
    counts = rng.choice([0, 1, 2, 3], (events, attributes + 1), p=[0.2, 0.65, 0.1, 0.05])
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    attribute = np.repeat(np.tile(np.arange(attributes + 1), events), counts.reshape(-1))
    code = rng.choice(ends, int(starts[-1]))
    return EventBatch(events, pairs=Pairs(starts, attribute.astype(np.int32), code))


def reference() -> Matcher:
    """A matcher to agree with."""
    if not NUMBA:
        return TamisGpu(device="simulated")
    from tamis.match.scan import Scan

    return Scan()


def same(found: Matches, right: Matches) -> bool:
    """Whether two answers have the same slots for each event."""
    if (found.starts != right.starts).any():
        return False
    ordered = [each.slots[np.lexsort((each.slots, each.events))] for each in (found, right)]
    return bool((ordered[0] == ordered[1]).all())


def agree(make: Callable[[], Matcher], scale: float) -> None:
    """Compare answers on random clauses of all kinds, with changes in between."""
    worlds = {
        "few values": (8, np.array([LOWEST, LOWEST + 1, *range(-9, 10), HIGHEST - 1, HIGHEST])),
        "many values": (8, np.random.default_rng(1).integers(LOWEST, HIGHEST, 300_000)),
        "many attributes": (70, np.arange(40)),
        "one attribute": (1, np.arange(1000)),
    }
    for seed, (name, (attributes, ends)) in enumerate(worlds.items()):
        rng = np.random.default_rng(seed)
        many = max(300, int(20_000 * scale))
        began = time.perf_counter()
        matchers = [make(), reference()]
        clauses = [random_clause(rng, attributes, ends) for _ in range(many)]
        slots = rng.permutation(2 * many)[:many]
        pairs, wrong = 0, 0

        def compare(events: int, matchers: Any = matchers, rng: Any = rng) -> tuple[int, int]:
            batch = random_batch(rng, events, attributes, ends)  # noqa: B023 - called in this round
            found, right = (each.match(batch) for each in matchers)
            return right.total, int(not same(found, right))

        def change(gone: Any, new: Any, matchers: Any = matchers) -> None:
            for each in matchers:
                each.remove(gone)
                each.add(new, from_rows([clauses[i % many] for i in new.tolist()]))  # noqa: B023

        for each in matchers:
            each.add(slots, from_rows(clauses))
        steps = [compare(max(40, int(2000 * scale))), compare(1), compare(7), compare(17)]
        for _ in range(6):
            gone = rng.permutation(slots)[: many // 10]
            new = np.concatenate([gone[: many // 20], 3 * many + rng.permutation(many)[:50]])
            change(gone, new)
            slots = np.concatenate([np.setdiff1d(slots, gone), new])
            steps.append(compare(max(40, int(700 * scale))))
            change(new[-50:], new[:0])
            slots = np.setdiff1d(slots, new[-50:])
        gone = rng.permutation(slots)[: len(slots) * 9 // 10]
        change(gone, gone[:0])
        steps.append(compare(300))
        matchers[0].check()
        pairs, wrong = (sum(each) for each in zip(*steps, strict=True))
        say("agree", world=name, clauses=many, comparisons=len(steps), pairs=pairs, wrong=wrong,
            seconds=time.perf_counter() - began)  # fmt: skip
        if wrong:
            failed.append(name)


def measure(name: str, made: Made, make: Callable[[], TamisGpu], seed: int) -> None:
    """Batches of a workload: with the ids on the device, and on the host."""
    began = time.perf_counter()
    terms = terms_of(made)
    slots = np.arange(len(made.low))
    built = time.perf_counter()
    matcher = make()
    matcher.add(slots, terms)
    added = time.perf_counter()
    drawn = [made.values(BATCH) for _ in range(BATCHES + 2)]
    batches = [batch_of(*each) for each in drawn]
    found = matcher.match(batches[0])
    say(name, clauses=len(slots), terms_s=built - began, add_s=added - built,
        first_match_s=time.perf_counter() - added, gb=matcher.nbytes / 1e9)  # fmt: skip
    for event in range(0, BATCH, BATCH // 12):
        values, present = drawn[0]
        right = expected(made, values[event], None if present is None else present[event])
        if sorted(found[event]) != right.tolist():
            failed.append(name)
            say(name, wrong_event=event, found=len(found[event]), right=len(right))
            break
    matcher.match(batches[1])
    kept = matcher._device()
    timings: dict[str, list[float]] = {"device": [], "host": []}
    total = 0
    for batch in batches[2:]:
        for where, times in timings.items():
            wait(kept)
            begin = time.perf_counter()
            if where == "host":
                total += matcher.match(batch).total
            else:
                matcher.find_on_device(batch)
                wait(kept)
            times.append((time.perf_counter() - begin) / BATCH * 1e6)
    ids = total / BATCHES / BATCH
    for where, times in timings.items():
        say(name, ids_on=where, us_an_event=median(times), least=min(times), most=max(times),
            ids_an_event=ids)  # fmt: skip
    say(name, kernels_us_an_event=dict(kernel_times(matcher, batches[2])))
    change(name, matcher, terms, batches[3], np.random.default_rng(seed))
    one = [batches[2][at : at + 1] for at in range(30)]
    say(name, one_event_us=median([timed(partial(matcher.match, each)) for each in one]))


def timed(call: Callable[[], object]) -> float:
    """Microseconds of a call."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e6


def wait(device: Any) -> None:
    """Until the device has done everything."""
    if device.xp is not np:
        device.xp.cuda.runtime.deviceSynchronize()


def kernel_times(matcher: TamisGpu, batch: EventBatch) -> Iterator[tuple[str, float]]:
    """Each kernel of a batch alone, and the copy of the ids."""
    device = matcher._device()
    if device.xp is np:
        return
    seen: dict[str, float] = {}
    plain, host = device.launch, device.host  # type: ignore[attr-defined]

    def clocked(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            wait(device)
            begin = time.perf_counter()
            given = call(*arguments)
            wait(device)
            key = arguments[0] if name == "launch" else name
            seen[key] = seen.get(key, 0) + (time.perf_counter() - begin) / BATCH * 1e6
            return given

        return run

    vars(device).update(launch=clocked("launch", plain), host=clocked("copies", host))
    matcher.match(batch)
    del vars(device)["launch"], vars(device)["host"]
    yield from ((key, round(value, 4)) for key, value in seen.items())


def change(
    name: str, matcher: TamisGpu, terms: Terms, batch: EventBatch, rng: np.random.Generator
) -> None:
    """The time that changes add to the next match."""
    few = batch[:32]
    for many in (1, 1000, 50_000):
        times = []
        for _ in range(5):
            slots = np.sort(rng.permutation(terms.clauses)[:many])
            matcher.remove(slots)
            matcher.add(slots, terms.take(slots))
            times.append(timed(lambda: matcher.match(few)))
        base = median([timed(lambda: matcher.match(few)) for _ in range(5)])
        say(name, changed=many, change_us=median(times) - base, base_us=base)


def bus(device: Any) -> None:
    """How fast ids can come to the host at most."""
    xp = device.xp
    if xp is np:
        return
    there = xp.zeros(1 << 26, np.int32)
    device.host(there)
    times = [timed(lambda: device.host(there)) for _ in range(5)]
    say("bus", gb_a_second=there.nbytes / median(times) / 1e3, host_dtype="pinned")


def compile_kernels(device: Any) -> None:
    """Compile everything, for several numbers of columns."""
    if device.xp is np:
        return
    for columns, shared in product((2, 6, 10, 24), (True, False)):
        variant = KernelVariant(columns, shared, shared and columns < 10)
        begin = time.perf_counter()
        facts = {}
        for kernel in ("bound_clauses", "write_lines", "place_events", "find", "add_up", "gather"):
            function = device.compiled(kernel, variant)
            facts[kernel] = [function.num_regs, function.local_size_bytes]
        say("compile", variant=list(variant), registers_and_local_bytes=facts,
            seconds=time.perf_counter() - begin)  # fmt: skip


def main() -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--device", default="cuda", choices=("cuda", "simulated"))
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of clauses")
    given = parser.parse_args()
    parts = given.parts or PARTS
    if unknown := set(parts) - {*PARTS}:
        parser.error(f"there is no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    say("setting", numpy=np.__version__, numba=NUMBA, cupy=find_spec("cupy") is not None)

    def make() -> TamisGpu:
        return TamisGpu(device=given.device)

    device: Any = make()._device()
    xp = device.xp
    if xp is not np:
        facts = xp.cuda.runtime.getDeviceProperties(device._device.id)
        say("setting", gpu=facts["name"].decode(), cupy=xp.__version__, places=device.places,
            shared_bytes=device.shared_bytes)  # fmt: skip
    rng = np.random.default_rng(7)
    makers: dict[str, tuple[float, Callable[[int], Made]]] = {
        "dexin": (1e6, partial(dexin, rng)),
        "matching": (1e6, partial(dexin, rng, matching=0.01)),
        "lesubscribe": (3.2e6, partial(lesubscribe, rng)),
        "large": (1e7, partial(dexin, rng)),
    }
    for part in parts:
        try:
            if part == "compile":
                compile_kernels(device)
            elif part == "agree":
                agree(make, min(1.0, given.scale))
                bus(device)
            else:
                size, maker = makers[part]
                measure(part, maker(max(3000, int(given.scale * size))), make, 3)
        except Exception as error:  # noqa: BLE001 - time on such a machine is short: go on
            failed.append(part)
            say(part, error=f"{type(error).__name__}: {error}")
            traceback.print_exc()
    say("done", failed=failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
