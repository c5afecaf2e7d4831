"""Operators, expensive and pluggable functions in conditions: declare, find and call them."""

from tamis.operators.operator import Operator, operator
from tamis.operators.registry import Operators
from tamis.operators.report import CallCounts, Report
from tamis.operators.runner import Runner

__all__ = ["CallCounts", "Operator", "Operators", "Report", "Runner", "operator"]
