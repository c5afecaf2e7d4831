"""The reference of the Python API: the public names of each module, from their docstrings."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from scripts.signatures import markdown, paragraphs, signature_text
from tamis.client.verbs import Verbs
from tamis.errors import TamisError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
MODULES = ("tamis", "tamis.spark", "tamis.store", "tamis.client", "tamis.testing", "tamis.errors")
_HEAD = """\
# Python API

<!-- made by scripts/generate.py from docstrings: change them there, and run make generate -->

The public names of tamis, made from their docstrings. The [tutorial](tutorial.md) shows how they
work together.
"""


def api_page() -> dict[Path, str]:
    """The page as it should be."""
    lines = [_HEAD]
    for name in MODULES:
        module = import_module(name)
        lines += [f"## {name}", "", *_spaced(markdown(module))]
        lines += _errors(module) if name == "tamis.errors" else _names(module)
    return {PAGE: "\n".join(lines).rstrip() + "\n"}


def _names(module: ModuleType) -> Iterator[str]:
    """Classes, functions and tables of a module, in the order of their names."""
    answers = 0
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) and issubclass(thing, msgspec.Struct):
            answers += 1
            continue
        yield from (f"### {module.__name__}.{name}", "")
        if isinstance(thing, Mapping) and not inspect.isclass(thing):
            yield from _table(thing)
        elif inspect.isclass(thing):
            yield from _class(name, thing)
        else:
            yield from _spaced([f"**`{signature_text(name, thing)}`**", *markdown(thing)])
    if answers:
        yield from ("[The client](client.md#answers) has the classes of answers.", "")


def _table(functions: Mapping[str, Any]) -> Iterator[str]:
    """A table of functions by name."""
    yield from ("| name | |", "| --- | --- |")
    yield from (f"| `{name}` | {paragraphs(each)[0]} |" for name, each in functions.items())
    yield ""


def _class(name: str, kind: type) -> Iterator[str]:
    yield from _spaced([f"**`{signature_text(name, kind)}`**", *markdown(kind)])
    if issubclass(kind, Verbs):
        yield from ("Its methods are [the verbs](client.md#verbs).", "")
        return
    for member, found in _members(kind):
        if isinstance(found, property | cached_property):
            shown = member
        else:
            called = f"{name}.{member}" if isinstance(found, classmethod) else member
            shown = signature_text(called, getattr(kind, member))
        yield from _spaced([f"**`{shown}`**", *markdown(found)])


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of tamis defines and documents."""
    seen = set()
    for owner in kind.__mro__:
        for name, found in vars(owner).items():
            documented = callable(found) or isinstance(
                found, property | cached_property | classmethod | staticmethod
            )
            if name.startswith("_") or name in seen or not owner.__module__.startswith("tamis"):
                continue
            seen.add(name)
            if documented and inspect.getdoc(found):
                yield name, found


def _errors(module: ModuleType) -> Iterator[str]:
    """The errors, each with the one that it is a kind of."""
    yield from ("| error | a kind of | |", "| --- | --- | --- |")
    for name, kind in vars(module).items():
        if inspect.isclass(kind) and issubclass(kind, TamisError):
            yield f"| `{name}` | `{kind.__mro__[1].__name__}` | {' '.join(paragraphs(kind))} |"


def _spaced(blocks: list[str]) -> Iterator[str]:
    for block in blocks:
        yield from (block, "")
