"""The report of a runner: what became of the calls of each operator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tamis.errors import counted
from tamis.model.operator import Fault, Rows

FAULTY = 100  # calls with constants whose faults a report has, for each operator
_SHOWN = 5  # of these as text


@dataclass
class ConstantFaults:
    """The faults of an operator with certain constants."""

    faults: int = 0
    last: str | None = None
    set_aside_for: float | None = None  # seconds; None: it is called

    def __str__(self) -> str:
        aside = _aside(self.set_aside_for)
        return f"{counted(self.faults, 'fault')}{aside}" + (
            f"; the last: {self.last}" if self.last else ""
        )


@dataclass
class CallCounts:
    """The calls of one operator.

    There were `calls` of the function for `events`, which took `seconds`. Each event has an answer,
    or is counted under one kind of fault. `constants` are the calls with constants that had faults,
    as in a condition; only the latest few.
    """

    operator: str
    events: int = 0
    calls: int = 0
    seconds: float = 0.0
    hits: int = 0  # events with a remembered result
    misses: int = 0  # events without one, of an operator whose results are remembered
    raised: int = 0
    refused: int = 0
    timeouts: int = 0
    nonsense: int = 0
    set_aside: int = 0
    set_aside_for: float | None = None  # seconds; inf: until a call comes back; None: it is called
    last: str | None = None  # the reason of the last fault
    constants: dict[str, ConstantFaults] = field(default_factory=dict)

    @property
    def faults(self) -> int:
        """Events without an answer."""
        return self.raised + self.refused + self.timeouts + self.nonsense + self.set_aside

    @property
    def answered(self) -> int:
        """Events with an answer."""
        return self.events - self.faults

    def enter(self, answers: Sequence[Rows | Fault]) -> bool:
        """Count the answers for some events; returns whether there are faults."""
        self.events += len(answers)
        faulty = False
        for answer in answers:
            if isinstance(answer, Fault):
                faulty = True
                kind = _COLUMN[answer.kind]
                setattr(self, kind, getattr(self, kind) + 1)
                if answer.kind != "set aside":
                    self.last = answer.reason
        return faulty

    def blame(self, call: str, fault: Fault) -> None:
        """Count a fault of a call with constants."""
        known = self.constants.pop(call, None) or ConstantFaults()
        known.faults += 1
        if fault.kind != "set aside":
            known.last = fault.reason
        self.constants[call] = known  # as the latest
        if len(self.constants) > FAULTY:
            del self.constants[next(iter(self.constants))]

    def copy(self) -> CallCounts:
        """Counts that do not change with these."""
        return replace(
            self, constants={call: replace(each) for call, each in self.constants.items()}
        )

    def __str__(self) -> str:
        asked = f"{counted(self.events, 'event')}, {counted(self.calls, 'call')}"
        parts = [f"{self.operator}: {asked}, {self.seconds:.3g} s"]
        if self.hits:
            parts.append(f"{self.hits} remembered")
        parts += [
            f"{getattr(self, column)} {kind}"
            for kind, column in _COLUMN.items()
            if getattr(self, column)
        ]
        text = ", ".join(parts)
        text += _aside(self.set_aside_for)
        text += f"; the last fault: {self.last}" if self.last else ""
        worst = sorted(self.constants.items(), key=lambda each: -each[1].faults)
        lines = [text, *(f"  {call}: {each}" for call, each in worst[:_SHOWN])]
        if len(worst) > _SHOWN:
            lines.append(f"  and {counted(len(worst) - _SHOWN, 'call')} with other constants")
        return "\n".join(lines)


def _aside(seconds: float | None) -> str:
    if seconds == math.inf:
        return "; set aside until a call that hangs comes back"
    return "" if seconds is None else f"; set aside for another {seconds:.3g} s"


_COLUMN = {
    "raised": "raised",
    "refused": "refused",
    "timeout": "timeouts",
    "nonsense": "nonsense",
    "set aside": "set_aside",
}


@dataclass(frozen=True)
class Report:
    """The counts of all operators that were called, and what else an engine left out.

    `given_up`: how often a clause did not hold because operators returned too many rows to join.
    `undecided`: how often a condition did not hold because an event has too many values to try.
    `remembered`: how many rows of results are in memory.
    `ignored`: how many values were ignored, because the schema does not know them, by name.
    """

    counts: tuple[CallCounts, ...]
    given_up: int = 0
    undecided: int = 0
    remembered: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Iterable[CallCounts]) -> Report:
        """An immutable copy."""
        return cls(tuple(sorted((each.copy() for each in counts), key=lambda c: c.operator)))

    def __getitem__(self, operator: str) -> CallCounts:
        for each in self.counts:
            if each.operator == operator:
                return each
        return CallCounts(operator)

    def __iter__(self) -> Iterator[CallCounts]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def faults(self) -> int:
        """Events without an answer, over all operators."""
        return sum(each.faults for each in self.counts)

    def __str__(self) -> str:
        lines = [str(each) for each in self.counts]
        if self.given_up:
            lines.append(f"joins of too many rows, given up: {self.given_up}")
        if self.undecided:
            lines.append(f"conditions on too many values, given up: {self.undecided}")
        if self.ignored:
            lines.append(self.ignored_text)
        return "\n".join(lines) or "no operator was called"

    @property
    def ignored_text(self) -> str:
        """The names that were ignored most often, on one line."""
        most = sorted(self.ignored.items(), key=lambda each: (-each[1], each[0]))
        return "ignored: " + ", ".join(f"{name} ({many})" for name, many in most[:20])
