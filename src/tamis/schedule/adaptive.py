"""Ours: next the predicate that is expected to save most for its cost, given what is known."""

from __future__ import annotations

from tamis.schedule import pricing
from tamis.schedule.base import Run, Scheduler
from tamis.schedule.graph import Int8s
from tamis.schedule.numbering import Numbered
from tamis.schedule.steps import Flat, begin


class Adaptive(Scheduler):
    def _room(self, numbered: Numbered) -> Flat:
        return pricing.priced_flat(numbered)

    def _run(self, numbered: Numbered, room: Flat) -> Run:
        begin(*numbered, *room[:3], 0)
        told = self.statistics
        pricing.value(*numbered, *room[1:], told.p, told.doubt, told.cost)
        return PricedRun(numbered, room)


class PricedRun(Run):
    """A run that chooses by prices."""

    def _step(self, outcomes: Int8s, told: int, outcome: int) -> int:
        return pricing.step(*self._numbered, *self._room, outcomes, told, outcome)
