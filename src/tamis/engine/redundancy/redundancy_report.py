"""What a redundancy report says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tamis.engine.ids import Id
from tamis.errors import counted

Progress = Callable[[str, int, int], object]
"""Called with the name of a step, how much of it is done, and of how much."""


class CoveredSubscription(NamedTuple):
    """Every event that matches `id` also matches `by`."""

    id: Id
    by: Id


@dataclass(frozen=True)
class RedundancyReport:
    """Which subscriptions say nothing that others do not say, and what was not decided.

    What is listed is true of every event that the schema allows. What is not listed is not so,
    unless `undecided` names a subscription that it concerns.

    Attributes:
        subscriptions: how many were compared.
        duplicates: groups of ids that match the same events.
        covered: each subscription all of whose events another one matches too. That one is not
            covered itself, and is not always true.
        never_true: ids that no event matches.
        always_true: ids that every event matches.
        undecided: for each reason, the ids that may be redundant, or make others so, in ways that
            the report does not find.
        work: counts of what was looked at.
    """

    subscriptions: int = 0
    duplicates: list[list[Id]] = field(default_factory=list)
    covered: list[CoveredSubscription] = field(default_factory=list)
    never_true: list[Id] = field(default_factory=list)
    always_true: list[Id] = field(default_factory=list)
    undecided: dict[str, list[Id]] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)

    @property
    def redundant(self) -> int:
        """How many subscriptions could go: copies, covered, never true, always true."""
        copies = {id for group in self.duplicates for id in group[1:]}
        others = {each.id for each in self.covered} | {*self.never_true} | {*self.always_true}
        return len(copies | others)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "subscriptions": self.subscriptions,
            "redundant": self.redundant,
            "duplicates": self.duplicates,
            "covered": [each._asdict() for each in self.covered],
            "never_true": self.never_true,
            "always_true": self.always_true,
            "undecided": self.undecided,
            "work": self.work,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines(5))

    def lines(self, shown: int) -> list[str]:
        """The report as text: the first `shown` entries of each kind."""
        copies = sum(len(group) - 1 for group in self.duplicates)
        found = [f"{counted(self.subscriptions, 'subscription')}, {self.redundant:,} redundant"]
        kinds = [
            (
                f"duplicates: {copies:,}, of {counted(len(self.duplicates), 'subscription')}",
                [_few(group) for group in self.duplicates[:shown]],
                len(self.duplicates),
            ),
            (
                f"covered by another: {len(self.covered):,}",
                [f"{each.id} by {each.by}" for each in self.covered[:shown]],
                len(self.covered),
            ),
            _ids("never true", self.never_true, shown),
            _ids("always true", self.always_true, shown),
        ]
        kinds += [
            _ids(f"not decided, {reason}", ids, shown) for reason, ids in self.undecided.items()
        ]
        for title, entries, many in kinds:
            found.append(title)
            found += [f"  {entry}" for entry in entries]
            if many > shown:
                found.append(f"  and {many - shown:,} more")
        return found


def _ids(title: str, ids: list[Id], shown: int) -> tuple[str, list[str], int]:
    return f"{title}: {len(ids):,}", [str(id) for id in ids[:shown]], len(ids)


def _few(group: list[Id]) -> str:
    many = len(group) - 8
    listed = " = ".join(map(str, group[:8]))
    return f"{listed} and {many:,} more" if many > 0 else listed
