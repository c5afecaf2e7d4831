"""The operators that a service enables: subscribers may call these and no others.

Whoever runs the service names them: packs, single operators, or modules that declare operators.
They are loaded at once, so that a library that is missing is noticed before anybody subscribes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from tamis.errors import OperatorError, suggestion
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators, installed


class EnabledOperators(Operators):
    """Only the operators that were named; `entries` are the names as they were given.

    >>> some = EnabledOperators.named([])
    >>> "wordCount" in some, len(some)
    (False, 0)
    >>> some["wordCount"]
    Traceback (most recent call last):
        ...
    tamis.errors.OperatorError: operator 'wordCount' is not enabled here; whoever runs the service \
may enable it
    """

    def __init__(self, *given: Operator, entries: Iterable[str] = ()) -> None:
        super().__init__(*given)
        self.entries = tuple(entries)

    @classmethod
    def named(cls, entries: Iterable[str]) -> EnabledOperators:
        """By the names of packs, operators and modules; raises `OperatorError` for others.

        A text may hold several names, with commas between them.
        """
        names = (name.strip() for entry in entries for name in entry.split(","))
        given = tuple(dict.fromkeys(filter(None, names)))
        found = {each.name: each for entry in given for each in _declared(entry)}
        return cls(*found.values(), entries=given)

    def over(self, hiding: Mapping[str, Operator]) -> EnabledOperators:
        return EnabledOperators(*{**self._given, **hiding}.values(), entries=self.entries)

    def __getitem__(self, name: str) -> Operator:
        found = self._given.get(name)
        if found is None and super().__contains__(name):
            raise OperatorError(
                f"operator {name!r} is not enabled here; whoever runs the service may enable it"
            )
        return self._given[name]

    def __contains__(self, name: object) -> bool:
        return name in self._given

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)


def _declared(entry: str) -> list[Operator]:
    """The operators that an entry stands for."""
    everything, packs = Operators(), _packs()
    if entry in packs:
        return [everything[name] for name in packs[entry]]
    if entry in installed():
        return [everything[entry]]
    try:
        module = import_module(entry)
    except (ImportError, ValueError) as why:
        if isinstance(why, ModuleNotFoundError) and not f"{entry}.".startswith(f"{why.name}."):
            raise OperatorError(
                f"the module {entry!r} needs {why.name}, which is not installed"
            ) from None
        raise OperatorError(
            f"{entry!r} is not a pack, an operator or a module that can be imported; packs are "
            f"{', '.join(packs)}" + suggestion(entry, [*packs, *installed()])
        ) from None
    found = [each for each in vars(module).values() if isinstance(each, Operator)]
    if not found:
        raise OperatorError(f"the module {entry!r} declares no operators")
    return found


def _packs() -> dict[str, list[str]]:
    """The operators of each pack, which is the last part of the name of their module."""
    found: dict[str, list[str]] = {}
    for name, points in sorted(installed().items()):
        for point in points:
            found.setdefault(point.module.rpartition(".")[2], []).append(name)
    return found
