"""All metrics as rows of a table, for the docs."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.broker.metrics import REGISTRY
from tamis.service.observation.readings import READINGS


def metric_rows() -> Iterator[str]:
    """A row for each metric of our own, by name."""
    rows = [(f"tamis_{each.name}", "gauge", each.help) for each in READINGS]
    for metric in REGISTRY.collect():
        if metric.name.startswith("tamis_"):
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            rows.append((name, metric.type, metric.documentation))
    for name, kind, help in sorted(rows):
        yield f"| `{name}` | {kind} | {help} |"
