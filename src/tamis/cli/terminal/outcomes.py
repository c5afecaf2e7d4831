"""What a command has found or done, as text for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_answer(answer: Any, as_json: bool, text: str) -> None:
    """The answer as a line of JSON, or else the text; no text prints nothing."""
    if as_json:
        click.echo(json_text(answer))
    elif text:
        click.echo(text)


def json_text(value: Any) -> str:
    r"""A value as JSON in ASCII, without any control character.

    >>> json_text({"at": datetime(2030, 1, 2, tzinfo=UTC), "by": "Zoë\x7f"})
    '{"at": "2030-01-02T00:00:00Z", "by": "Zo\\u00eb\\u007f"}'
    """
    return json.dumps(value, default=_plain).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "__struct_fields__"):  # an answer of a service, which has imported it
        import msgspec

        return msgspec.to_builtins(value)
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
