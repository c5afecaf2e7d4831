"""`tamis check`, `tamis explain` and `tamis schema`: check conditions and schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click
from rich.text import Text

from tamis import Engine, Schema
from tamis.cli.terminal.console import stdout_console
from tamis.errors import EventError
from tamis.language import clauses, parse, to_text
from tamis.language.normal_form import PartialClause
from tamis.model.condition import Not
from tamis.model.explain import Explanation


@click.command()
@click.argument("schema_file", metavar="SCHEMA")
@click.argument("condition")
def check(schema_file: str, condition: str) -> None:
    """Check CONDITION against the schema in the file SCHEMA (YAML or JSON).

    Prints the condition in normal spelling and its clauses; the condition matches when one of its
    clauses does. Carets mark the place of a mistake, and the exit code is then 2.
    """
    # The same check as for subscribing, so that both accept the same conditions.
    Engine(Schema.load(schema_file)).compile(condition)
    parsed = parse(condition)
    found = clauses(parsed)
    click.echo(to_text(parsed))
    click.echo(f"{len(found)} clause{'s' if len(found) > 1 else ''}")
    if len(found) > 1:
        for number, clause in enumerate(found, 1):
            click.echo(f"  {number:>{len(str(len(found)))}}. {_clause_text(clause)}")


def _clause_text(clause: PartialClause) -> str:
    parts = [
        to_text(part if positive else Not(part))
        for part, positive in (*clause.literals, *clause.residual)
    ]
    indexed = len(clause.literals)
    shown = " and ".join(parts[:indexed])
    return f"{shown}, then verified: {' and '.join(parts[indexed:])}" if clause.residual else shown


@click.command()
@click.argument("schema_file", metavar="SCHEMA")
@click.argument("condition")
@click.argument("event", metavar="EVENT_JSON")
def explain(schema_file: str, condition: str, event: str) -> None:
    """Explain why the event EVENT_JSON matches CONDITION or not, predicate by predicate.

    EVENT_JSON is a JSON object, or - to read one from standard input.
    """
    engine = Engine(Schema.load(schema_file))
    id = engine.subscribe(condition)
    given = _read_event(sys.stdin.read() if event == "-" else event)
    stdout_console().print(explanation_text(engine.explain(id, given)))


def _read_event(text: str) -> Mapping[str, Any]:
    try:
        given: Mapping[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise EventError(f"the event is not JSON that can be read: {why}") from None
    return given


def explanation_text(explanation: Explanation) -> Text:
    """An explanation with coloured verdicts."""
    text = Text(str(explanation))
    text.highlight_regex(r"(?m)^matches$|^ +yes", "green")
    text.highlight_regex(r"(?m)^does not match$|^ +no ", "red")
    return text


@click.command()
@click.argument("schema_file", metavar="FILE")
def schema(schema_file: str) -> None:
    """Check the schema in FILE (YAML or JSON) and summarise it: event types and attributes."""
    click.echo(Schema.load(schema_file).summary())
