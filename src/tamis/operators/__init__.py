"""Expensive, pluggable functions in conditions: declaring them, finding them, calling them."""

from tamis.operators.faults import Count, Report
from tamis.operators.operator import Operator, operator
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner

__all__ = ["Count", "Operator", "Operators", "Report", "Runner", "operator"]
