"""Explanations of conditions that are not subscribed to."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from tamis.engine import Engine
from tamis.model.explain import Explanation
from tamis.model.schema import Schema
from tamis.operators.enabled_operators import EnabledOperators
from tamis.operators.remembering_runner import RememberingRunner


class Explainer:
    """Explains conditions. Threads may share it.

    All explanations call operators through one runner, one at a time: an operator that hangs is set
    aside here as it is where events are matched, however often somebody asks.
    """

    def __init__(self, operators: EnabledOperators) -> None:
        self._operators, self._lock = operators, Lock()
        self.runner = RememberingRunner()
        self.close = self.runner.close

    def explain(
        self, schema: Schema, condition: str, event: Mapping[str, Any], language: str
    ) -> Explanation:
        """Explain why an event satisfies a condition or not."""
        engine = Engine(schema, operators=self._operators)
        engine.calls.runner = self.runner
        id = engine.subscribe(condition, language=language)
        if not engine.calls:
            return engine.explain(id, event)
        with self._lock:
            return engine.explain(id, event)
