"""Operators by name: given ones, those of this program, and those of installed packages.

A package offers operators by entry points:

    [project.entry-points."tamis.operators"]
    locIn = "tamis.operators.packs.spatial:locIn"

Listing them imports nothing. An operator is imported when a condition first names it: who asks
about places does not pay for the pack for images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from tamis.errors import OperatorError, TamisError
from tamis.model.operator import Signature
from tamis.operators.operator import Operator

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tamis.operators"
_O = TypeVar("_O", bound=Operator)
_REGISTERED: dict[str, dict[str, Operator]] = {}  # by name, then by module and function


def register(new: _O) -> _O:
    """Register an operator in this process, and return it; the decorator does it.

    A function that is defined again replaces its old definition, as when a cell of a notebook runs
    once more. Another function under the same name does not: the name becomes ambiguous.
    """
    _REGISTERED.setdefault(new.name, {})[_origin(new)] = new
    return new


def _registered(name: str) -> Operator | None:
    known = dict(_REGISTERED.get(name, ()))
    if len(known) > 1:
        # A user's operator with the name of an installed one is meant to hide it. The installed one
        # may be imported along with its neighbours; this must not change what the name means.
        theirs = {f"{point.module}.{point.attr}" for point in installed().get(name, ())}
        known = {where: each for where, each in known.items() if where not in theirs}
    if len(known) > 1:
        raise OperatorError(
            f"there are several operators named {name!r}: {', '.join(sorted(known))}; "
            "pass the right one to the engine, or rename one by operator(name=...)"
        )
    return next(iter(known.values()), None)


class Operators(Mapping[str, Operator]):
    """All operators by name: given ones hide registered ones, which hide installed ones.

    >>> from tamis.operators.operator import operator
    >>> @operator(name="docs.even", reads=("n",), run="here")
    ... def even(n):
    ...     return n % 2 == 0
    >>> Operators()["docs.even"].signature.reads
    ('n',)
    >>> "docs.odd" in Operators()
    False
    """

    def __init__(self, *given: Operator) -> None:
        self._given: dict[str, Operator] = {}
        for each in given:
            if not isinstance(each, Operator):
                raise OperatorError(f"{each!r} is not an operator; @tamis.operator makes one")
            if self._given.setdefault(each.name, each) is not each:
                raise OperatorError(f"two operators named {each.name!r} were given")

    @classmethod
    def of(cls, given: Operator | Iterable[Operator] | Mapping[str, Operator]) -> Operators:
        """From the argument of an engine: one operator, several, or a mapping by name."""
        if isinstance(given, Operators):
            return given
        if isinstance(given, Operator):
            return cls(given)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise OperatorError(
                f"operators is a list of operators, not {given!r}: "
                "operators=[locIn], where @tamis.operator has made locIn"
            )
        if not isinstance(given, Mapping):
            return cls(*given)
        made = cls(*given.values())
        for name, each in given.items():
            if each.name != name:
                raise OperatorError(
                    f"{name!r} stands for an operator named {each.name!r}; "
                    "operator(name=...) gives it another name"
                )
        return made

    def over(self, hiding: Mapping[str, Operator]) -> Operators:
        """These, where others hide those of the same name."""
        return Operators(*{**self._given, **hiding}.values())

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures, for conditions. A look-up may import the operator."""
        return _Signatures(self)

    def __getitem__(self, name: str) -> Operator:
        found = self._given.get(name)
        if found is None:
            found = _registered(name)
        return found if found is not None else _load(name, installed()[name])

    def __contains__(self, name: object) -> bool:
        return name in self._given or name in _REGISTERED or name in installed()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._given, *list(_REGISTERED), *installed())))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Operators({', '.join(self)})"


class _Signatures(Mapping[str, Signature]):
    def __init__(self, operators: Operators) -> None:
        self._operators = operators

    def __getitem__(self, name: str) -> Signature:
        return self._operators[name].signature

    def __contains__(self, name: object) -> bool:
        return name in self._operators

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)


@cache
def installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of installed packages by name; more than one where packages disagree."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        others = found.get(point.name, ())
        if all(point.value != other.value for other in others):
            found[point.name] = (*others, point)
    return found


def _load(name: str, points: tuple[EntryPoint, ...]) -> Operator:
    """Import an operator of an installed package."""
    point, *others = points
    if others:
        where = ", ".join(f"{each.value} ({_package(each)})" for each in points)
        raise OperatorError(
            f"several packages have an operator named {name!r}: {where}; "
            "pass the right one to the engine"
        )
    try:
        found = point.load()
    except TamisError:
        raise
    except ModuleNotFoundError as error:
        raise OperatorError(
            f"operator {name!r} needs {error.name}, which is not installed" + _advice(point)
        ) from error
    except Exception as error:
        raise OperatorError(
            f"operator {name!r} cannot be loaded from {point.value}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, Operator):
        raise OperatorError(f"{point.value} ({_package(point)}) is not an operator, but {found!r}")
    if found.name != name:
        raise OperatorError(
            f"the entry point {name!r} ({_package(point)}) leads to an operator named "
            f"{found.name!r}; both must have one name"
        )
    return found


def _advice(point: EntryPoint) -> str:
    """What to install: the extra that the entry point names, or that its module is named after."""
    if point.dist is None:
        return ""
    offered = point.dist.metadata.get_all("Provides-Extra") or []
    extras = point.extras or [part for part in point.module.split(".") if part in offered]
    wanted = f"{point.dist.name}[{','.join(extras)}]" if extras else ""
    return f"; pip install '{wanted}' brings it" if wanted else ""


def _package(point: EntryPoint) -> str:
    return "unknown package" if point.dist is None else point.dist.name


def _origin(operator: Operator) -> str:
    function = operator.function
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"
