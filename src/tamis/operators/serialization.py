"""How operators are pickled: by name, by the pack that made them, or by value.

The decorator leaves the operator where the function was. So whatever can be imported goes by the
operator's name in its module, and is itself again on the other side. The operators that a call of
`pack(…)` has made go as that call, and it is made once for all of them over there. What is left are
functions of a script, a notebook or another function; these go by cloudpickle, with all that they
refer to.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.errors import OperatorError

if TYPE_CHECKING:
    from tamis.operators.operator import Operator

_Made = TypeVar("_Made", bound="tuple[Operator, ...]")
_ADJUSTED = ("cost", "timeout", "run", "batch")  # what somebody may have set since


class Recipe:
    """A call that makes operators: of which function, and with what."""

    def __init__(self, pack: Callable[..., tuple[Operator, ...]], given: Mapping[str, Any]) -> None:
        self._pack, self._given = pack, dict(given)
        self._made: tuple[Operator, ...] | None = None

    def made(self, at: int) -> Operator:
        """One of the operators; they are made when the first one is asked for."""
        if self._made is None:
            self._made = self._pack(**self._given)
        return self._made[at]

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self._pack, self._given)


def made_by(
    pack: Callable[..., tuple[Operator, ...]], given: Mapping[str, Any], made: _Made
) -> _Made:
    """Let operators know that calling `pack` again, with what was given, makes them again."""
    recipe = Recipe(pack, given)
    for at, each in enumerate(made):
        each.recipe = (recipe, at)
    return made


def reduced(operator: Operator, by_state: Callable[[], Any]) -> Any:
    """What `__reduce_ex__` of an operator returns; `by_state` is what it would for any object."""
    module, name = getattr(operator, "__module__", None), getattr(operator, "__qualname__", None)
    if module and name and module != "__main__" and _imported(module, name) is operator:
        return name
    if operator.recipe is not None:
        adjusted = {each: getattr(operator, each) for each in _ADJUSTED}
        recipe, at = operator.recipe
        return Recipe.made, (recipe, at), adjusted
    if _NOW.by_value:
        return by_state()
    try:
        return pickle.loads, (by_value(operator),)
    except Exception as error:
        from tamis.operators.results import said

        raise OperatorError(
            f"operator {operator.name!r} cannot be pickled: {said(error)}; "
            "what a module has at its top level is pickled by name"
        ) from error


def by_value(operator: Operator) -> bytes:
    """The operator, and what its function refers to, as a pickle that any process can read."""
    import cloudpickle  # only by those who need it

    before, _NOW.by_value = _NOW.by_value, True
    try:
        sent: bytes = cloudpickle.dumps(operator, protocol=5)
    finally:
        _NOW.by_value = before
    return sent


class _Now(local):
    """What this thread is about: in cloudpickle, a function that refers to itself is no trap."""

    by_value = False


_NOW = _Now()


def _imported(module: str, name: str) -> object:
    """What a module that is imported already has under a name."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
