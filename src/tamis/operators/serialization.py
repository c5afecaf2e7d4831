"""How operators are pickled: by name, by the call of `pack` that made them, or by value.

The decorator puts the operator in the place of the function. So an importable operator is pickled
as its name in its module. The operators that one call of `pack(…)` made are pickled as this call,
which is repeated once for all of them on the other side. Functions of a script, a notebook or
another function are pickled by cloudpickle, with everything that they refer to.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.errors import OperatorError

if TYPE_CHECKING:
    from tamis.operators.operator import Operator

_Made = TypeVar("_Made", bound="tuple[Operator, ...]")
# Whether this thread is inside cloudpickle: a function may refer to its own operator.
_BY_VALUE: ContextVar[bool] = ContextVar("_BY_VALUE", default=False)
_ADJUSTABLE = ("cost", "timeout", "run", "batch")  # attributes that a user may have set


class PackCall:
    """A call of `pack` that makes operators."""

    def __init__(self, pack: Callable[..., tuple[Operator, ...]], given: Mapping[str, Any]) -> None:
        self._pack, self._given = pack, dict(given)
        self._made: tuple[Operator, ...] | None = None

    def made(self, at: int) -> Operator:
        """One of the operators; the first use makes them all."""
        if self._made is None:
            self._made = self._pack(**self._given)
        return self._made[at]

    def __reduce__(self) -> tuple[Any, ...]:
        return PackCall, (self._pack, self._given)


def remember_pack_call(
    pack: Callable[..., tuple[Operator, ...]], given: Mapping[str, Any], made: _Made
) -> _Made:
    """Note in operators the call of `pack` that makes them again."""
    call = PackCall(pack, given)
    for at, each in enumerate(made):
        each.pack_call = (call, at)
    return made


def reduce_operator(operator: Operator, by_state: Callable[[], Any]) -> Any:
    """The result of `__reduce_ex__` of an operator; `by_state` is the default of any object."""
    module, name = getattr(operator, "__module__", None), getattr(operator, "__qualname__", None)
    if module and name and module != "__main__" and _imported(module, name) is operator:
        return name
    if operator.pack_call is not None:
        adjusted = {each: getattr(operator, each) for each in _ADJUSTABLE}
        return PackCall.made, operator.pack_call, adjusted
    if _BY_VALUE.get():
        return by_state()
    try:
        return pickle.loads, (dump_by_value(operator),)
    except Exception as error:
        from tamis.operators.results import describe

        raise OperatorError(
            f"operator {operator.name!r} cannot be pickled: {describe(error)}; "
            "move it to the top level of a module to have it pickled by name"
        ) from error


def dump_by_value(operator: Operator) -> bytes:
    """A pickle of the operator and of everything its function refers to."""
    import cloudpickle  # most operators do not need it

    before = _BY_VALUE.set(True)
    try:
        sent: bytes = cloudpickle.dumps(operator, protocol=5)
    finally:
        _BY_VALUE.reset(before)
    return sent


def _imported(module: str, name: str) -> object:
    """What an imported module has under a name; None if it is not imported."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
