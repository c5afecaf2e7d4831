"""A small experiment with made-up algorithms, for the parts of the lab around it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar

from tamis.cli import main as cli
from tamis.errors import TamisError
from tamis.lab.experiments.experiment import (
    Axes,
    Claim,
    Curve,
    Experiment,
    Judgement,
    LabScale,
    LabStep,
    Mode,
    Observation,
    Observations,
    Standing,
)
from tamis.lab.experiments.registry import EXPERIMENTS

PAUSE = "TINY_PAUSE"  # seconds of a measurement
WHERE = "tests.unit.lab.experiments.tiny_experiment"
SIZES = {LabScale.SMALL: (10, 100, 1_000), LabScale.PAPER: (10, 100, 1_000, 10_000)}
LIMIT = 500  # of the algorithm that refuses
CURVES = (Curve("dexin"), Curve("rein"), Curve("dexin", Mode.TUNED, {"slots": 4}))


def dexin_wins(found: Observations) -> Judgement:
    ours, other = found.curve("dexin", "match_ms"), found.curve("rein", "match_ms")
    seen = f"dexin {ours[10]:g} ms, rein {other[10]:g} ms"
    better = ours[10] < other[10]
    return Judgement(Standing.CONFIRMED if better else Standing.CONTRARY, seen)


def grows(found: Observations) -> Judgement:
    last = found.curve("dexin", "match_ms")[1_000]
    return Judgement(Standing.NOT_CONFIRMED, f"{last:g} ms", "It does not. Nothing grows here.")


def always(found: Observations) -> Judgement:
    return Judgement(Standing.CONFIRMED, f"{len(found.all)} observations")


class Tiny(Experiment):
    """Two algorithms that take as long as they say. The paper leaves `everything` open."""

    id = "TINY"
    paper = "dexin"
    title = "time by subscriptions"
    source = "figure 0"
    plots: ClassVar[tuple[Axes, ...]] = (
        Axes("subscriptions", "ms an event", "match_ms", log_x=True, log_y=True),
        Axes("subscriptions", "deviation in ms", "match_ms", log_x=True, deviation=True),
        Axes("subscriptions", "nodes an event", "nodes", log_x=True),
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("TINY.best", "dexin is < rein & all", dexin_wins, stated="20 %"),
        Claim("TINY.growth", "it grows", grows),
    )
    factor = 1.0

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return [LabStep(size, CURVES, {"n": size}) for size in SIZES.get(scale, ())]

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        for curve in step.curves:
            time.sleep(float(os.environ.get(PAUSE, "0")))
            seen = Observation(
                step.x, curve.name, curve.mode, options=curve.options, parameters=step.parameters
            )
            if curve.name == "rein" and float(step.x) > LIMIT:
                yield replace(seen, refusal="too large for rein")
                continue
            slower = self.factor if curve.name == "dexin" else 3.0
            times = [slower * (float(step.x) + seed) * part / 7 for part in (1, 2, 3)]
            yield replace(seen, measured={"match_ms": times}, counts={"nodes": 2.0})


class Slower(Tiny):
    """The same, with another verdict."""

    factor = 9.0


class Wrong(Tiny):
    """An algorithm of it gives wrong answers."""

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        yield from islice(super().measure(step, seed), 1)
        raise TamisError("a wrong answer")


class Stopped(Tiny):
    """Somebody presses Ctrl-C after the first observation."""

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        yield from islice(super().measure(step, seed), 1)
        raise KeyboardInterrupt


class Refused(Tiny):
    """Every algorithm refuses."""

    id = "REFUSED"
    claims = ()

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        yield from (step.observation(each, refusal="too large") for each in step.curves)


class Sharded(Tiny):
    """On Spark, in the session of the run."""

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return [LabStep(2, CURVES[:1])] if scale is LabScale.CLUSTER else []

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        from tamis.spark.runtime.sessions import session

        for curve in step.curves:
            rows = session().range(int(step.x), numPartitions=2).count()
            yield Observation(step.x, curve.name, curve.mode, counts={"nodes": float(rows)})


class Names(Tiny):
    """Names on the x axis, and two panels."""

    id = "NAMES"
    claims = (Claim("NAMES.best", "dexin wins", always),)

    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        return [
            LabStep(x, CURVES[:2], {}, panel)
            for panel in ("time", "space")
            for x in ("few", "many")
        ]

    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        for curve in step.curves:
            yield Observation(
                step.x, curve.name, curve.mode, {"match_ms": [1.7, 2.9]}, panel=step.panel
            )


if __name__ == "__main__":  # the command, with the experiment of the tests
    EXPERIMENTS["TINY"] = f"{WHERE}:Tiny"
    cli.main(sys.argv[1:])
