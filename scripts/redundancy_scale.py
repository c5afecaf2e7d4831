"""Report on the redundancy of many generated subscriptions, with redundant ones planted.

    python scripts/redundancy_scale.py [--workload dexin] [--subscriptions 1000000] [--planted 1000]
                                       [--sample 100] [--seed 1]

Plants copies that are written differently, narrower conditions, and contradictions, `planted` of
each. Checks that all are found. Then compares the report on a sample of subscriptions with a plain
comparison of each with all others. Prints time, memory and counts; exits with 1 if something is
missing or wrong.
"""

import argparse
import random
import resource
import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tamis import Engine, Schema
from tamis.engine.redundancy.find_redundancy import of_table
from tamis.engine.redundancy.redundancy_report import RedundancyReport
from tamis.workload import make
from tamis.workload.base import Workload
from tamis.workload.tables import conditions

_AND = " and "


def planted(workload: Workload, many: int, draw: random.Random) -> dict[str, str]:
    """Conditions that are redundant: the ids say of what kind they are, and of which other one."""
    texts = conditions(workload.subscriptions)
    names = list(workload.schema["attributes"])
    found: dict[str, str] = {}
    for at in draw.sample(range(len(texts)), 3 * many):
        text = texts[at].as_py()
        parts = text.split(_AND)
        kind = ("copy", "narrow", "never")[len(found) % 3]
        if kind == "copy":
            draw.shuffle(parts)
            found[f"copy {at}"] = _AND.join(map(_rewritten, parts))
        elif kind == "never":
            numbers = [part for part in parts if '"' not in part] or [f"{names[-1]} < 1"]
            name = numbers[0].split()[0]
            found[f"never {at}"] = f"{text} and {name} < 0.3 and {name} > 0.6"
        else:
            free = [name for name in names if not any(p.startswith(name + " ") for p in parts)]
            found[f"narrow {at}"] = f"{text} and {free[-1]} exists" if free else _half(parts)
    return found


def _rewritten(part: str) -> str:
    """A comparison written with `not`."""
    name, comparator, value = part.split(" ", 2)
    other = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}.get(comparator)
    if other is None:
        return f"{name} in ({value})"
    return f"not {name} {other} {value}"


def _half(parts: list[str]) -> str:
    """A condition whose first range is narrower: it ends in the middle."""
    for low, high in pairwise(parts):
        if low.split()[:2] == [high.split()[0], ">="] and low.split()[2] != high.split()[2]:
            middle = (float(low.split()[2]) + float(high.split()[2])) / 2
            return _AND.join([*parts, f"{low.split()[0]} <= {middle!r}"])
    return _AND.join([*parts, f"{parts[0].split()[0]} = {parts[0].split()[2]}"])


def boxes(workload: Workload) -> tuple[Any, Any]:
    """The least and the greatest value of each attribute in each subscription, as arrays."""
    names = list(workload.schema["attributes"])
    whole = {n for n, kind in workload.schema["attributes"].items() if kind != "decimal"}
    lists = workload.subscriptions["predicates"].combine_chunks()
    lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
    assert isinstance(lists, pa.ListArray | pa.LargeListArray)
    rows = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))
    fields: Any = lists.flatten()
    low = np.full((len(lists), len(names)), -np.inf)
    high = np.full((len(lists), len(names)), np.inf)
    attribute = np.array(names)
    given = np.array(fields.field("attribute").to_pylist())
    words = np.array(fields.field("comparator").to_pylist())
    texts = fields.field("text").to_pylist()
    codes = {text: at for at, text in enumerate(sorted({t for t in texts if t is not None}))}
    values = fields.field("value").to_numpy(zero_copy_only=False).astype(float)
    values = np.array(
        [codes[t] if t is not None else v for t, v in zip(texts, values, strict=True)]
    )
    for at, name in enumerate(attribute):
        step = name in whole
        for word in ("=", "<", "<=", ">", ">="):
            mine = (given == name) & (words == word)
            value, row = values[mine], rows[mine]
            if word in ("=", ">", ">="):
                above = value + 1 if step else np.nextafter(value, np.inf)
                np.maximum.at(low[:, at], row, above if word == ">" else value)
            if word in ("=", "<", "<="):
                below = value - 1 if step else np.nextafter(value, -np.inf)
                np.minimum.at(high[:, at], row, below if word == "<" else value)
    return low, high


def wrong(workload: Workload, report: RedundancyReport, sample: int, draw: random.Random) -> int:
    """How many subscriptions of a sample the report says something else of than comparing does."""
    low, high = boxes(workload)
    covered = {each.id for each in report.covered}
    group_of = {id: at for at, group in enumerate(report.duplicates) for id in group}
    found = 0
    for at in draw.sample(range(len(low)), sample):
        around = ((low <= low[at]) & (high[at] <= high)).all(axis=1)
        same = around & ((low == low[at]) & (high == high[at])).all(axis=1)
        copies = {str(each) for each in np.flatnonzero(same)} - {str(at)}
        alike = {id for id in copies if group_of.get(id, -1) == group_of.get(str(at), -2)}
        if alike != copies or bool((around & ~same).any()) != (str(at) in covered):
            found += 1
            print(f"wrong: {at}, copies {sorted(copies)}, covered {(around & ~same).any()}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--workload", default="dexin")
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--planted", type=int, default=1_000)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    workload = make(given.workload, given.subscriptions, seed=given.seed)
    extra = planted(workload, given.planted, draw)
    ids = [*map(str, range(given.subscriptions)), *extra]
    texts = pa.chunked_array([conditions(workload.subscriptions), pa.array([*extra.values()])])
    table = pa.table({"id": ids, "condition": texts})
    del texts
    last = [time.perf_counter(), ""]

    def progress(what: str, done: int, total: int) -> None:
        if what != last[1]:
            print(f"  {time.perf_counter() - began:6.1f} s  {what}", flush=True)
            last[1] = what

    print(f"{given.workload}: {len(ids):,} subscriptions, {given.planted:,} of each kind planted")
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began, spent = time.perf_counter(), time.process_time()
    report, refused = of_table(Engine(Schema.from_dict(workload.schema)), table, progress)
    took, cpu = time.perf_counter() - began, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{took:.1f} s, {cpu:.1f} s of processor; {peak:,.0f} MiB, before {loaded:,.0f} MiB")
    print("\n".join(report.lines(2)))
    print(", ".join(f"{many:,} {what}" for what, many in report.work.items()))
    groups = {id: at for at, group in enumerate(report.duplicates) for id in group}
    covered, never = {each.id for each in report.covered}, {*report.never_true}
    missed = [
        id
        for id in extra
        if (id.startswith("copy") and groups.get(id, -1) != groups.get(id.split()[1], -2))
        or (id.startswith("narrow") and id not in covered and id not in groups)
        or (id.startswith("never") and id not in never)
    ]
    print(
        f"planted: {len(extra):,}, not found: {len(missed):,} {missed[:3]}; refused: {refused[:3]}"
    )
    bad = wrong(workload, report, given.sample, draw) if given.sample else 0
    print(f"compared with all others: {given.sample:,}, wrong: {bad}")
    return 1 if missed or bad or refused else 0


if __name__ == "__main__":
    sys.exit(main())
