"""The table of experiments: an id and the class that measures it, imported on first use."""

from __future__ import annotations

from importlib import import_module

from tamis.errors import TamisError, suggestion
from tamis.lab.experiments.experiment import Experiment

# A line for each figure. The order is that of the papers, and of the report.
EXPERIMENTS: dict[str, str] = {
    "LS-9a": "tamis.lab.papers.lesubscribe.figure9:LsFigure9",
    "LS-10": "tamis.lab.papers.lesubscribe.figure10:LsFigure10",
    "LS-11": "tamis.lab.papers.lesubscribe.figure11:LsFigure11",
    "LS-ins": "tamis.lab.papers.lesubscribe.insertion:LsInsertion",
    "LS-qual": "tamis.lab.papers.lesubscribe.unselective:LsUnselective",
    "LS-gough": "tamis.lab.papers.lesubscribe.gough:LsGough",
    "LS-hanson": "tamis.lab.papers.lesubscribe.hanson:LsHanson",
    "LS-aguilera": "tamis.lab.papers.lesubscribe.aguilera:LsAguilera",
    "LS-neon": "tamis.lab.papers.lesubscribe.neon:LsNeon",
    "LS-capacity": "tamis.lab.papers.lesubscribe.capacity:LsCapacity",
    "LS-processors": "tamis.lab.papers.lesubscribe.processors:LsProcessors",
    "LS-types": "tamis.lab.papers.lesubscribe.event_types:LsEventTypes",
    "TO-2.1": "tamis.lab.papers.topss.figure2:TopssFigure21",
    "TO-2.2": "tamis.lab.papers.topss.figure2:TopssFigure22",
    "TO-2.3": "tamis.lab.papers.topss.figure2:TopssFigure23",
    "TO-2.4": "tamis.lab.papers.topss.figure2:TopssFigure24",
    "TO-2.5": "tamis.lab.papers.topss.figure2:TopssFigure25",
    "TO-2.6": "tamis.lab.papers.topss.figure2:TopssFigure26",
    "TO-3": "tamis.lab.papers.topss.figure3:TopssFigure3",
    "TO-4": "tamis.lab.papers.topss.figure4:TopssFigure4",
    "TO-T1": "tamis.lab.papers.topss.table1:TopssTable1",
    "TO-T2": "tamis.lab.papers.topss.table2:TopssTable2",
    "TO-ops": "tamis.lab.papers.topss.table_operations:TopssTableOperations",
    "TO-sql": "tamis.lab.papers.topss.sql_search:TopssSqlSearch",
    "TO-var": "tamis.lab.papers.topss.repeated_runs:TopssRepeatedRuns",
    "LI-4": "tamis.lab.papers.liu.figure_4:UniformSubscriptions",
    "LI-5": "tamis.lab.papers.liu.figure_5:ZipfSubscriptions",
    "LI-6": "tamis.lab.papers.liu.figure_6:SharedPredicates",
    "LI-7": "tamis.lab.papers.liu.figure_7:SubscriptionLengths",
    "LI-8": "tamis.lab.papers.liu.figure_8:PredicatePopularity",
    "LI-abs": "tamis.lab.papers.liu.reduction:StatedReduction",
    "LI-thm": "tamis.lab.papers.liu.theorem_2:Theorem2",
    "LI-cost": "tamis.lab.papers.liu.costs:DifferentCosts",
    "AG-thm": "tamis.lab.papers.gryphon.theorem:TreeTheorem",
    "AG-sim": "tamis.lab.papers.gryphon.simulation:SimulatedLoad",
    "AG-java": "tamis.lab.papers.gryphon.prototype:JavaPrototype",
    "AG-opt": "tamis.lab.papers.gryphon.optimisations:TreeOptimisations",
    "DX-2": "tamis.lab.papers.dexin.subscriptions:SubscriptionsExperiment",
    "DX-4": "tamis.lab.papers.dexin.attributes:AttributesExperiment",
    "DX-6": "tamis.lab.papers.dexin.range_widths:RangeWidthsExperiment",
    "DX-7": "tamis.lab.papers.dexin.zipf:ZipfSubscriptionsExperiment",
    "DX-8": "tamis.lab.papers.dexin.zipf:ZipfAttributesExperiment",
    "DX-9": "tamis.lab.papers.dexin.zipf:ZipfWidthsExperiment",
    "DX-10": "tamis.lab.papers.dexin.cardinalities:CardinalitiesExperiment",
    "DX-11": "tamis.lab.papers.dexin.point_shares:PointSharesExperiment",
    "DX-12": "tamis.lab.papers.dexin.matching_rates:MatchingRatesExperiment",
    "DX-13": "tamis.lab.papers.dexin.changes:ChangesExperiment",
    "DX-15": "tamis.lab.papers.dexin.plans:PlansExperiment",
    "DX-17": "tamis.lab.papers.dexin.single_methods:SingleMethodsExperiment",
    "DX-tau": "tamis.lab.papers.dexin.slots:SlotsExperiment",
}


def experiment(name: str) -> Experiment:
    """The experiment with an id, or with claims under it: DX-2 also has the claims of DX-3.

    Upper and lower case do not matter.
    """
    for known in EXPERIMENTS:
        if known.lower() == name.lower():
            return _load(known)
    for found in map(_load, EXPERIMENTS):
        if name.lower() in (each.lower() for each in figure_ids(found)):
            return found
    raise TamisError(f"unknown experiment {name!r}{suggestion(name, EXPERIMENTS)}")


def figure_ids(given: Experiment) -> list[str]:
    """The id of an experiment, and those of further figures that its claims are about."""
    others = (
        claim.id.partition(".")[0]
        for claim in given.claims
        if not claim.id.startswith(f"{given.id}.")
    )
    return list(dict.fromkeys([given.id, *others]))


def _load(known: str) -> Experiment:
    module, _, kind = EXPERIMENTS[known].partition(":")
    found: type[Experiment] = getattr(import_module(module), kind)
    return found()
