"""What an experiment is: steps to measure, curves, and claims to check on what was measured.

A paper's figure is one file in `tamis.lab.papers` with a subclass of `Experiment`, and one line in
the registry. An experiment only measures: it yields an observation for each curve of each step. The
runner stores them, the plots draw them, and the claims judge them. None of these runs the
experiment again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, pstdev
from typing import Any, ClassVar

OVER_LIMIT = "over the limit of "  # so begins the reason of a step that a run has left out
_SIZES = ("n", "subscriptions", "predicates", "attributes")  # parameters of workloads


class LabScale(StrEnum):
    """How large an experiment is."""

    SMALL = "small"  # all experiments within 30 minutes on two cores
    PAPER = "paper"  # the sizes of the paper
    # Sizes that one process does not hold. `tamis.spark.runtime.sessions.session()` gives the
    # session that the run has started.
    CLUSTER = "cluster"


class Mode(StrEnum):
    """How an algorithm is run. Claims are about `PAPER`."""

    PAPER = "paper"  # as the paper describes it
    TUNED = "tuned"  # with the best options of a small grid
    OURS = "ours"  # an algorithm that the paper does not have, such as `tamis`


@dataclass(frozen=True)
class Curve:
    """An algorithm in one mode: a line in the plot."""

    name: str
    mode: Mode = Mode.PAPER
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.name} ({self.mode})"


@dataclass(frozen=True)
class LabStep:
    """One value on the x axis, and the curves to measure there.

    A step is measured on one workload, so that its generation is shared by all curves.
    `parameters` are those of the workload; they go into the result file.
    """

    x: float | str
    curves: tuple[Curve, ...]
    parameters: dict[str, Any] = field(default_factory=dict)
    panel: str = ""  # for experiments with several plots side by side

    def is_larger(self, other: LabStep) -> bool:
        """Whether this workload has more of something than another one, and nothing less."""
        pairs = [
            (self.parameters[name], other.parameters[name])
            for name in _SIZES
            if name in self.parameters and name in other.parameters
        ]
        same = self.panel == other.panel
        return same and all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    def observation(
        self,
        curve: Curve,
        measured: Mapping[str, list[float]] | None = None,
        counts: Mapping[str, float] | None = None,
        *,
        refusal: str = "",
    ) -> Observation:
        """What is observed of a curve at this step."""
        return Observation(
            self.x,
            curve.name,
            curve.mode,
            dict(measured or {}),
            dict(counts or {}),
            dict(curve.options),
            dict(self.parameters),
            self.panel,
            refusal,
        )


@dataclass(frozen=True)
class Observation:
    """What was measured for one curve at one step.

    `measured` holds raw repetitions by quantity, named with its unit: `match_ms`, one number an
    event; `memory_mb`, one number. `counts` holds operations an event, which no machine changes.
    A curve that refuses the step (too large, for example) has a `refusal` and nothing else; so has
    a curve that the run has left out, because a smaller step took it longer than the limit.
    """

    x: float | str
    curve: str
    mode: Mode
    measured: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    panel: str = ""
    refusal: str = ""

    @property
    def left_out(self) -> bool:
        """Whether the run left the curve out, so that nothing is known about the step."""
        return self.refusal.startswith(OVER_LIMIT)

    def value(self, quantity: str) -> float:
        """The mean of a measured quantity, or a count."""
        if quantity in self.counts:
            return self.counts[quantity]
        return fmean(self.measured[quantity])

    def deviation(self, quantity: str) -> float:
        """The standard deviation of the repetitions."""
        return pstdev(self.measured[quantity])

    def has(self, quantity: str) -> bool:
        return quantity in self.counts or quantity in self.measured


class Standing(StrEnum):
    """What the results say about a claim."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    CONTRARY = "contrary"
    UNTESTABLE = "cannot be tested here"


@dataclass(frozen=True)
class Judgement:
    """A standing, our figures, and the reason if the claim is not confirmed."""

    standing: Standing
    seen: str  # our figures, one line
    why: str = ""  # two sentences, unless confirmed


@dataclass(frozen=True)
class Observations:
    """All observations of an experiment, for claims and plots."""

    all: Sequence[Observation]

    def curve(
        self, name: str, quantity: str, mode: Mode = Mode.PAPER, panel: str = ""
    ) -> dict[float | str, float]:
        """The means of a quantity by x, without steps that were refused."""
        return {
            each.x: each.value(quantity)
            for each in self.all
            if (each.curve, each.mode, each.panel) == (name, mode, panel) and each.has(quantity)
        }

    def refusals(self, name: str, mode: Mode = Mode.PAPER) -> dict[float | str, str]:
        """The reasons of a curve's own refusals by x, without the steps that a run left out."""
        mine = (each for each in self.all if (each.curve, each.mode) == (name, mode))
        return {each.x: each.refusal for each in mine if each.refusal and not each.left_out}


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and the check that judges it.

    `check` sees the observations of its experiment only. A check that misses a curve raises
    `KeyError`; the report then says that the results are incomplete.
    """

    id: str  # "DX-2.best"
    statement: str  # in our own words
    check: Callable[[Observations], Judgement]
    stated: str = ""  # the paper's figures, if it states any


@dataclass(frozen=True)
class Axes:
    """What a plot shows: one quantity over x."""

    x: str  # label with unit
    y: str
    quantity: str
    log_x: bool = False
    log_y: bool = False
    deviation: bool = False  # draw standard deviations instead of means


class Experiment(ABC):
    """A figure or table of a paper.

    `plots` are drawn side by side. Times and their operation counts are two plots.
    """

    id: ClassVar[str]
    paper: ClassVar[str]  # "dexin", "gryphon", "lesubscribe", "liu", "topss"
    title: ClassVar[str]
    source: ClassVar[str]  # "figure 2"; what the paper leaves open is in the docstring
    plots: ClassVar[tuple[Axes, ...]]
    claims: ClassVar[tuple[Claim, ...]]

    @abstractmethod
    def steps(self, scale: LabScale) -> Sequence[LabStep]:
        """The steps in the order in which they are measured; cheap to call.

        Empty for a scale that the experiment does not have, such as `CLUSTER`.
        """

    def trial(self) -> Sequence[LabStep]:
        """Steps so small that a test measures them in a second; by default, no steps."""
        return ()

    @abstractmethod
    def measure(self, step: LabStep, seed: int) -> Iterator[Observation]:
        """Measure the curves of a step, in their order.

        The runner passes a step with only those curves that its file lacks, and stores each
        observation as it comes. Algorithms are checked against each other before they are timed.
        """
