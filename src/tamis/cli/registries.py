"""`tamis matchers`, `tamis operators` and `tamis schedulers`: list what can be named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.text import Text

from tamis.cli.terminal.console import stdout_console
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError
from tamis.match import registry as matcher_registry
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators, installed
from tamis.schedule import registry as scheduler_registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_WHERE = {"here": "runs in place", "thread": "runs in a thread", "process": "runs in a process"}


class _RegistryEntry(NamedTuple):
    """An entry of a list. Papers and call forms are too long for columns of a table."""

    name: str
    facts: str
    idea: str = ""
    notes: tuple[str, ...] = ()
    missing: bool = False


def _show(listings: Iterable[_RegistryEntry]) -> None:
    console = stdout_console()
    for each in listings:
        style = "cyan" if each.missing else "bold cyan"
        console.print(Text.assemble((each.name, style), f"  {each.facts}"), soft_wrap=True)
        if each.idea:
            console.print(Text(f"    {each.idea}"), soft_wrap=True)
        for note in each.notes:
            console.print(Text(f"    {note}", "dim"), soft_wrap=True)


@click.command()
@click.argument("names", nargs=-1)
@json_option
def matchers(names: tuple[str, ...], as_json: bool) -> None:
    """List the matching algorithms: the paper and the idea of each.

    With NAMES, list only these, with their options. Pass a name and its options to
    `Engine(schema, NAME, slots=1500)`, or to `tamis bench --matcher NAME --option slots=1500`.
    """
    entries = {name: matcher_registry.entry(name) for name in names or matcher_registry.matchers()}
    options = {
        name: [
            {"name": each.name, "default": each.default, "meaning": each.meaning,
             "values": each.values}
            for each in matcher_registry.matcher_class(name).options().values()
        ]
        for name in names
    }  # fmt: skip
    if as_json:
        facts = [
            {"name": name, "exact": each.exact, "paper": each.paper, "idea": each.idea}
            | ({"options": options[name]} if names else {})
            for name, each in entries.items()
        ]
        print_answer(facts, as_json, "")
        return
    widest = max(map(len, entries))
    _show(
        _RegistryEntry(
            f"{name:<{widest}}",
            f"{'exact' if each.exact else 'approximate'}  {each.paper}",
            each.idea,
            tuple(map(_option_text, options[name])) or ("no options",) if names else (),
        )
        for name, each in entries.items()
    )


def _option_text(option: dict[str, Any]) -> str:
    return "{name}={default}  {meaning}; {values}".format_map(option)


@click.command()
@json_option
def schedulers(as_json: bool) -> None:
    """List the schedulers, which order the evaluation of operators. The default comes first.

    Pass a name to `Engine(schema, scheduler=NAME)`.
    """
    entries = {name: scheduler_registry.entry(name) for name in scheduler_registry.schedulers()}
    if as_json:
        facts = [{"name": name, "paper": each.paper, "idea": each.idea}
                 for name, each in entries.items()]  # fmt: skip
        print_answer(facts, as_json, "")
        return
    widest = max(map(len, entries))
    _show(
        _RegistryEntry(f"{name:<{widest}}", each.paper, each.idea) for name, each in entries.items()
    )


@click.command()
@json_option
def operators(as_json: bool) -> None:
    """List the operators that installed packages offer to conditions.

    For each operator: the form of its calls (a variable may replace an argument with a question
    mark), its purpose, the attributes it reads, where it runs, and its estimated cost. If a library
    is missing, the entry says what to install.
    """
    found = list(_operators())
    if as_json:
        facts = [
            {"call": each.name, "package": each.facts, "idea": each.idea, "notes": each.notes,
             "missing": each.missing}
            for each in found
        ]  # fmt: skip
        print_answer(facts, as_json, "")
        return
    if not found:
        click.echo("No installed package offers operators.")
    _show(found)
    missing = sum(each.missing for each in found)
    if missing:
        click.echo(f"{missing} of {len(found)} cannot be called here.")


def _operators() -> Iterator[_RegistryEntry]:
    """All operators, grouped by module. Each is imported, or says why it cannot be."""
    known = Operators()
    points = installed()

    # Names that several packages offer come first: importing a neighbour would register one of
    # them.
    def order(name: str) -> tuple[bool, str, str]:
        return len(points[name]) == 1, points[name][0].module, name

    for name in sorted(points, key=order):
        package = ", ".join(sorted({_package(each) for each in points[name]}))
        try:
            operator = known[name]
        except TamisError as why:
            yield _RegistryEntry(name, package, notes=(f"missing: {why}",), missing=True)
        else:
            idea = _first_line(operator.__doc__)
            yield _RegistryEntry(call_form(operator), package, idea, (_facts(operator),))


def call_form(operator: Operator) -> str:
    """How a call is written. A question mark marks an argument that may be a variable."""
    places = (f"?{each.name}" if each.free else each.name for each in operator.signature.parameters)
    return f"{operator.name}({', '.join(places)})"


def _package(point: EntryPoint) -> str:
    """The name to give to pip, with the extra of the entry point."""
    name = "unknown package" if point.dist is None else point.dist.name
    return f"{name}[{','.join(point.extras)}]" if point.extras else name


def _facts(operator: Operator) -> str:
    reads = ", ".join(operator.signature.reads) or "nothing of the event"
    where = _WHERE[operator.run] + (", in batches" if operator.batch else "")
    limit = "" if operator.run == "here" else f", at most {operator.timeout:g} s"
    return f"reads {reads}; {where}{limit}; about {operator.cost:g} ms"


def _first_line(text: str | None) -> str:
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
