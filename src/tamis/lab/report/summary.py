"""What a report says: the verdicts on all claims, and what changed since other results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tamis.lab.experiments.experiment import Experiment, LabScale, Standing
from tamis.lab.experiments.judgement import ClaimVerdict, VerdictChange, changes, judge
from tamis.lab.experiments.registry import EXPERIMENTS, experiment
from tamis.lab.experiments.result_files import LabResult, read_results

NOT_MEASURED = "not measured"
STANDINGS = (*map(str, Standing), NOT_MEASURED)
PAPERS = {  # by year
    "gryphon": "Gryphon's matching tree",
    "lesubscribe": "Le Subscribe",
    "topss": "TOPSS",
    "liu": "Liu et al., expensive operators",
    "dexin": "DEXIN",
}


@dataclass(frozen=True)
class LabSummary:
    """All experiments with steps at a scale, in the order of the registry, and their results."""

    scale: LabScale
    experiments: tuple[Experiment, ...]
    results: Mapping[str, LabResult]
    against: Mapping[str, LabResult] | None = None

    @classmethod
    def read(cls, folder: Path, scale: LabScale, against: Path | None = None) -> LabSummary:
        """The summary of a folder of result files, and perhaps of another one."""
        every = tuple(experiment(name) for name in EXPERIMENTS)
        return cls(
            scale,
            tuple(each for each in every if each.steps(scale)),
            read_results(folder, scale),
            None if against is None else read_results(against, scale),
        )

    @cached_property
    def verdicts(self) -> dict[str, ClaimVerdict]:
        """The verdicts by the ids of claims."""
        return self._judged(self.results)

    @cached_property
    def changes(self) -> list[VerdictChange]:
        """The claims that stood differently in the other results."""
        return [] if self.against is None else changes(self._judged(self.against), self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each standing."""
        found = Counter(each.standing for each in self.verdicts.values())
        return {name: found[name] for name in STANDINGS if found[name]}

    def _judged(self, results: Mapping[str, LabResult]) -> dict[str, ClaimVerdict]:
        return {
            verdict.claim.id: verdict
            for each in self.experiments
            for verdict in judge(each, results.get(each.id))
        }

    def as_json(self) -> dict[str, Any]:
        """The verdicts, for programs."""
        return {
            "scale": str(self.scale),
            "counts": self.counts,
            "claims": [_claim(each) for each in self.verdicts.values()],
            "changes": [
                {
                    "claim": each.claim.id,
                    "before": _claim(each.before),
                    "after": _claim(each.after),
                }
                for each in self.changes
            ],
        }


def _claim(verdict: ClaimVerdict) -> dict[str, Any]:
    judgement = verdict.judgement
    return {
        "id": verdict.claim.id,
        "experiment": verdict.experiment.id,
        "paper": verdict.experiment.paper,
        "statement": verdict.claim.statement,
        "stated": verdict.claim.stated,
        "standing": verdict.standing,
        "seen": judgement.seen if judgement else "",
        "why": judgement.why if judgement else verdict.lacking,
    }
