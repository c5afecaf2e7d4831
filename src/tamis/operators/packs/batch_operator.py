"""The base class of operators in packs.

An operator of a pack answers a list of values in one call. `pack` can make it several times, under
other names and over other attributes. It refuses constants that it can never answer for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tamis.model.operator import Parameter, Signature
from tamis.operators.operator import PAIRS, Operator


class BatchOperator(Operator):
    """An operator over one attribute, in batches.

    `answer` takes a list of values of the attribute, and the arguments by name; with `pairs` a list
    for each argument too. An exception in the place of a result is a fault of one event.
    `refusal` takes all parameters of a call by name, None for a variable. It returns why they are
    wrong, or None.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[..., list[Any]],
        *,
        attribute: str,
        arguments: Mapping[str, str] | None = None,
        gives: Mapping[str, str] | None = None,
        refusal: Callable[..., str | None] | None = None,
        module: str = __name__,
        cost: float,
        run: str = "here",
        pairs: bool = False,
    ) -> None:
        read_as = attribute.replace(".", "_")

        def function(*values: Any, **given: Any) -> list[Any]:
            # A direct call may pass values by position, and one constant for all of them.
            first, *rest = values or (given.pop(read_as),)
            if pairs:
                rest = [_for_each(each, first) for each in rest]
                given = {key: _for_each(each, first) for key, each in given.items()}
            return answer(first, *rest, **given)

        function.__name__ = function.__qualname__ = name
        function.__module__, function.__doc__ = module, answer.__doc__
        parameters = (
            *(Parameter(each, kind, False) for each, kind in (arguments or {}).items()),
            *(Parameter(each, kind, True) for each, kind in (gives or {}).items()),
        )
        self._refusal = refusal
        super().__init__(
            function,
            Signature(name, parameters, (attribute,)),
            cost=cost,
            run=run,
            batch=PAIRS if pairs else True,
        )

    def check(self, arguments: Sequence[Any]) -> str | None:
        if self._refusal is None:
            return None
        names = (each.name for each in self.signature.parameters)
        return self._refusal(**dict(zip(names, arguments, strict=True)))


def _for_each(given: Any, values: Sequence[Any]) -> Any:
    return given if isinstance(given, list) else [given] * len(values)
