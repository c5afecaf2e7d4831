"""event-ruler, the open implementation of event patterns, as a process that answers questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.java_process import JavaProcess


class EventRuler(JavaProcess):
    """A running event-ruler."""

    kind, version = "event-ruler", "2.1.0"
    artifacts = (f"software.amazon.event.ruler:event-ruler:{version}",)
    source = Path(__file__).parent / "data" / "event_ruler" / "AskRuler.java"

    def answers(
        self, patterns: Sequence[str], events: Sequence[dict[str, Any]]
    ) -> list[list[bool] | None]:
        """For each pattern, whether each event matches; None for a pattern that is refused."""
        asked = {"patterns": patterns, "events": [json.dumps(event) for event in events]}
        return self.ask([json.dumps(asked)], len(patterns))
