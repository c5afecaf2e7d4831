"""`tamis check`, `tamis explain`, `tamis translate` and `tamis schema`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from tamis import Engine, Schema
from tamis.cli.service.connection import at_most_one, connected, service_command
from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.options import now_option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import EventError, TamisError
from tamis.language import clauses, to_text
from tamis.language.dialects import NATIVE, read
from tamis.language.dialects import translate as translate_text
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


_language_option = click.option(
    "--language",
    default=NATIVE,
    show_default=True,
    help="Language of CONDITION.",
)


@click.command()
@_schema_argument
@click.argument("condition")
@_language_option
@service_command
def check(
    schema_file: str | None, condition: str, language: str, server: str, as_json: bool
) -> None:
    """Check CONDITION against the schema in the file SCHEMA (YAML or JSON), or of a service.

    Prints the condition in normal spelling of the language of tamis and its clauses; the condition
    matches when one of its clauses does. Carets mark the place of a mistake, and the exit code is
    then 2.
    """
    if schema_file is None and Path(condition).is_file():
        raise click.UsageError(f"Missing argument 'CONDITION' after the schema {condition}.")
    # The same check as for subscribing, so that both accept the same conditions.
    schema = _schema(schema_file, server)
    Engine(schema).compile(condition, language)
    parsed = translate_text(condition, schema, language)
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
@_language_option
@now_option
@service_command
def explain(
    schema_file: str | None,
    condition: str,
    event: str,
    language: str,
    now: str | None,
    server: str,
    as_json: bool,
) -> None:
    """Explain why the event EVENT_JSON matches CONDITION or not, predicate by predicate.

    SCHEMA is a file; without it, a running service explains. EVENT_JSON is a JSON object, or - to
    read one from standard input.
    """
    given = _read_event(_given(event))
    if schema_file is None:
        if now is not None:
            raise click.UsageError("--now needs a SCHEMA: a service takes its own time.")
        with connected(server) as client:
            answer = client.explain(condition, given, language=language)
        matches, explanation = answer.matches, answer.explanation
    else:
        engine = Engine(Schema.load(schema_file))
        found = engine.explain(engine.subscribe(condition, language=language), given, now=now)
        matches, explanation = found.holds, str(found)
    if as_json:
        print_answer({"matches": matches, "explanation": explanation}, as_json, "")
    else:
        stdout_console().print(explanation_text(explanation))


def _read_event(text: str) -> Mapping[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise EventError(f"the event is not JSON that can be read: {why}") from None
    if not isinstance(given, dict):
        raise EventError('an event is an object of attributes, such as {"price": 7}')
    return given


def _given(argument: str) -> str:
    """An argument, or standard input if it is `-`."""
    if argument != "-":
        return argument
    try:
        text = sys.stdin.read()
        text.encode()  # in some locales, bytes that are no text become lone surrogates
    except UnicodeError:
        raise TamisError("standard input is not UTF-8 text") from None
    return text


def explanation_text(explanation: Explanation | str) -> Text:
    """An explanation with coloured verdicts."""
    text = Text(str(explanation))
    text.highlight_regex(r"(?m)^matches$|^ +yes", "green")
    text.highlight_regex(r"(?m)^does not match$|^ +no ", "red")
    return text


@click.command()
@click.option("--from", "source", required=True, help="Language of CONDITION.")
@click.option(
    "--to",
    "target",
    type=click.Choice([NATIVE]),
    default=NATIVE,
    show_default=True,
    help="Language to print.",
)
@click.option(
    "--schema", "schema_file", help="File of a schema (YAML or JSON); without it, the open schema."
)
@click.argument("condition")
@json_option
def translate(
    source: str, target: str, schema_file: str | None, condition: str, as_json: bool
) -> None:
    """Print what CONDITION, in another language, means in the language of tamis.

    CONDITION is a text, or - to read it from standard input. Carets mark the place of what cannot
    be translated, and the exit code is then 2.
    """
    text = _given(condition)
    schema = Schema.open() if schema_file is None else Schema.load(schema_file)
    found = to_text(read(text, schema, language=source))
    print_answer({"condition": found, "language": target}, as_json, found)


@click.command()
@click.argument("schema_file", metavar="[FILE]", required=False)
@service_command
def schema(schema_file: str | None, server: str, as_json: bool) -> None:
    """Check the schema in FILE (YAML or JSON) and summarise it: event types and attributes.

    Without FILE, the schema of a running service. --json prints the document of the schema.
    """
    found = _schema(schema_file, server)
    print_answer(found.to_dict(), as_json, found.summary())
