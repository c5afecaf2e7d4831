"""`tamis check`, `tamis explain` and `tamis schema`: check conditions and schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click
from rich.text import Text

from tamis import Engine, Schema
from tamis.cli.service.connection import at_most_one, connected, print_answer, service_command
from tamis.cli.terminal.console import stdout_console
from tamis.errors import EventError
from tamis.language import clauses, parse, to_text
from tamis.language.normal_form import PartialClause
from tamis.model.condition import Not
from tamis.model.explain import Explanation

_schema_argument = click.argument("schema_file", metavar="[SCHEMA]", nargs=-1, callback=at_most_one)


def _schema(schema_file: str | None, server: str) -> Schema:
    """The schema of a file, or of a running service."""
    if schema_file is not None:
        return Schema.load(schema_file)
    with connected(server) as client:
        return Schema.from_dict(client.schema())


@click.command()
@_schema_argument
@click.argument("condition")
@service_command
def check(schema_file: str | None, condition: str, server: str, as_json: bool) -> None:
    """Check CONDITION against the schema in the file SCHEMA (YAML or JSON), or of a service.

    Prints the condition in normal spelling and its clauses; the condition matches when one of its
    clauses does. Carets mark the place of a mistake, and the exit code is then 2.
    """
    # The same check as for subscribing, so that both accept the same conditions.
    Engine(_schema(schema_file, server)).compile(condition)
    parsed = parse(condition)
    found = clauses(parsed)
    if as_json:
        shown = [_clause_text(clause) for clause in found]
        print_answer({"condition": to_text(parsed), "clauses": shown}, as_json, "")
        return
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
@_schema_argument
@click.argument("condition")
@click.argument("event", metavar="EVENT_JSON")
@service_command
def explain(
    schema_file: str | None, condition: str, event: str, server: str, as_json: bool
) -> None:
    """Explain why the event EVENT_JSON matches CONDITION or not, predicate by predicate.

    SCHEMA is a file; without it, a running service explains. EVENT_JSON is a JSON object, or - to
    read one from standard input.
    """
    given = _read_event(sys.stdin.read() if event == "-" else event)
    if schema_file is None:
        with connected(server) as client:
            answer = client.explain(condition, given)
        matches, explanation = answer.matches, answer.explanation
    else:
        engine = Engine(Schema.load(schema_file))
        found = engine.explain(engine.subscribe(condition), given)
        matches, explanation = found.holds, str(found)
    if as_json:
        print_answer({"matches": matches, "explanation": explanation}, as_json, "")
    else:
        stdout_console().print(explanation_text(explanation))


def _read_event(text: str) -> Mapping[str, Any]:
    try:
        given: Mapping[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise EventError(f"the event is not JSON that can be read: {why}") from None
    return given


def explanation_text(explanation: Explanation | str) -> Text:
    """An explanation with coloured verdicts."""
    text = Text(str(explanation))
    text.highlight_regex(r"(?m)^matches$|^ +yes", "green")
    text.highlight_regex(r"(?m)^does not match$|^ +no ", "red")
    return text


@click.command()
@click.argument("schema_file", metavar="[FILE]", required=False)
@service_command
def schema(schema_file: str | None, server: str, as_json: bool) -> None:
    """Check the schema in FILE (YAML or JSON) and summarise it: event types and attributes.

    Without FILE, the schema of a running service. --json prints the document of the schema.
    """
    found = _schema(schema_file, server)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        click.echo(found.summary())
