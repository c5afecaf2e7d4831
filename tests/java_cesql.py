"""CESQL in the Java library of CloudEvents, as a process that answers questions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from tests.cesql_expressions import Attributes
from tests.java_process import JavaProcess

_TYPES = {str: "s", int: "i", bool: "b"}


class JavaCesql(JavaProcess):
    """A running evaluator."""

    kind, version = "cesql", "4.0.1"
    artifacts = (
        f"io.cloudevents:cloudevents-sql:{version}",
        f"io.cloudevents:cloudevents-core:{version}",
    )
    source = Path(__file__).parent / "data" / "cesql" / "AskCesql.java"

    def answers(
        self, expressions: Sequence[str], events: Sequence[Attributes]
    ) -> list[list[bool] | None]:
        """For each expression, whether each event passes; None for one that is refused."""
        written = (
            ",".join(f"{name}:{_TYPES[type(value)]}:{_encoded(str(value))}"
                     for name, value in event.items())
            for event in events
        )  # fmt: skip
        lines = (" ".join(map(_encoded, expressions)), " ".join(written))
        return self.ask(lines, len(expressions))


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
