"""The type check of predicates on dynamic attributes: the constants decide on the kind."""

from __future__ import annotations

from tamis.errors import ConditionError
from tamis.language import spans
from tamis.language.constants import kind_of_constant, kind_text
from tamis.model.condition import OF_KIND, ORDER, TEXT, Predicate
from tamis.model.domain import show
from tamis.model.dynamic import KINDS


def check_dynamic(predicate: Predicate, text: str | None) -> None:
    """Refuse comparators that the kind of the constant lacks, and a range between two kinds."""
    comparator, value = predicate.comparator, predicate.value
    if comparator == OF_KIND and isinstance(value, tuple):
        for position, word in enumerate(value):
            if word not in KINDS:
                raise ConditionError(
                    f"{show(word)} is not a kind of values",
                    span=spans.part_of_predicate(text, predicate, 2 + position),
                    hint="kinds are: " + ", ".join(KINDS),
                )
    given = [each for each in (value if isinstance(value, tuple) else (value,)) if each is not None]
    kinds = [kind_of_constant(each) for each in given]
    for position, kind in enumerate(kinds):
        lacks = kind == "boolean" and comparator in ORDER
        if lacks or (kind != "text" and comparator in TEXT):
            raise ConditionError(
                f"{kind_text(kind)} has no comparator {comparator!r}",
                span=spans.part_of_predicate(text, predicate, 2 + position),
                hint="put text in quotes" if comparator in TEXT else "it has: = !=",
            )
    if comparator == "between" and len(set(kinds)) > 1:
        raise ConditionError(
            f"no value lies between {kind_text(kinds[0])} and {kind_text(kinds[1])}",
            span=predicate.span,
            hint="a range has two numbers, or two texts",
        )
