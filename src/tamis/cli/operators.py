"""`tamis operators` and `tamis schedulers`: what conditions may call, and who decides when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click
from rich.text import Text

from tamis.cli.screen import screen
from tamis.errors import TamisError
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators, installed
from tamis.schedule import registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_WHERE = {"here": "runs here", "thread": "runs in a thread", "process": "runs in a process"}


class _Found(NamedTuple):
    """An operator, or why there is none under that name; and the package that offers it."""

    name: str
    package: str
    operator: Operator | None
    refusal: str = ""


@click.command()
def operators() -> None:
    """List the operators that installed packages offer to conditions.

    Each with the form of its calls, where a variable may stand for what has a question mark; what
    it is for; the attributes that it reads; where it runs; and its cost before it is measured. One
    whose library is missing says what to install.
    """
    console = screen()
    found = _found()
    if not found:
        console.print("no installed package offers operators", soft_wrap=True)
    for each in found:
        if each.operator is None:
            head = Text.assemble((each.name, "cyan"), f"  {each.package}")
            console.print(head, soft_wrap=True)
            console.print(Text(f"    not there: {each.refusal}", "dim"), soft_wrap=True)
            continue
        form = (call_form(each.operator), "bold cyan")
        # Lines rather than a table: forms of calls are too long for columns side by side.
        console.print(Text.assemble(form, f"  {each.package}"), soft_wrap=True)
        if said := _first_line(each.operator.__doc__):
            console.print(Text(f"    {said}"), soft_wrap=True)
        console.print(Text(f"    {_facts(each.operator)}", "dim"), soft_wrap=True)
    missing = sum(each.operator is None for each in found)
    if missing:
        console.print(f"{missing} of {len(found)} cannot be called here", soft_wrap=True)


def call_form(operator: Operator) -> str:
    """How a call is written: a variable may stand where there is a question mark."""
    places = (f"?{each.name}" if each.free else each.name for each in operator.signature.parameters)
    return f"{operator.name}({', '.join(places)})"


def _found() -> list[_Found]:
    """All of them, those of one module together. Each is imported, or says why it cannot be."""
    known = Operators()
    points = installed()
    found = []

    # Names that packages disagree about come first, before importing a neighbour registers one of
    # the two.
    def place(name: str) -> tuple[bool, str, str]:
        return len(points[name]) == 1, points[name][0].module, name

    for name in sorted(points, key=place):
        package = ", ".join(sorted({_package(each) for each in points[name]}))
        try:
            found.append(_Found(name, package, known[name]))
        except TamisError as why:
            found.append(_Found(name, package, None, str(why)))
    return found


def _package(point: EntryPoint) -> str:
    """What to ask pip for, with the extra that the entry point names."""
    name = "unknown package" if point.dist is None else point.dist.name
    return f"{name}[{','.join(point.extras)}]" if point.extras else name


def _facts(operator: Operator) -> str:
    reads = ", ".join(operator.signature.reads) or "nothing of the event"
    where = _WHERE[operator.run] + (", in batches" if operator.batch else "")
    limit = "" if operator.run == "here" else f", at most {operator.timeout:g} s"
    return f"reads {reads}; {where}{limit}; about {operator.cost:g} ms"


def _first_line(text: str | None) -> str:
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


@click.command()
def schedulers() -> None:
    """List the schedulers, which decide what operator is evaluated next; the default comes first.

    Any of the names goes into `Engine(schema, scheduler=NAME)`.
    """
    console = screen()
    widest = max(len(name) for name in registry.schedulers())
    for name in registry.schedulers():
        entry = registry.entry(name)
        console.print(
            Text.assemble((f"{name:<{widest}}", "bold cyan"), f"  {entry.paper}"), soft_wrap=True
        )
        console.print(Text(f"    {entry.idea}"), soft_wrap=True)
