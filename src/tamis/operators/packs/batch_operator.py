"""What the packs of operators have in common.

An operator of a pack answers for a list of values at once, can be made several times under other
names and over other attributes, and knows which constants it will never be able to answer for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tamis.model.operator import Parameter, Signature
from tamis.operators.operator import PAIRS, Operator


class Packed(Operator):
    """An operator over one attribute, in batches.

    `answer` takes a list of the attribute's values and the arguments by name; with `pairs` a list
    of each argument too. A result that is an exception stands for one event that could not be
    answered; the others are not touched by it.
    `refusal` takes all parameters of a call by name, None for a variable, and says why they are
    wrong; None where they are not.
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
            # Called by hand, the values may come by position, and one constant for all of them.
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
        """Why no event could be answered with these constants; None where nothing is wrong.

        `arguments` as in `handed`. For whoever takes a subscription: a mistake of the subscriber
        is better refused at once than counted as a fault at every event.
        """
        if self._refusal is None:
            return None
        names = (each.name for each in self.signature.parameters)
        return self._refusal(**dict(zip(names, arguments, strict=True)))


def _for_each(given: Any, values: Sequence[Any]) -> Any:
    return given if isinstance(given, list) else [given] * len(values)
