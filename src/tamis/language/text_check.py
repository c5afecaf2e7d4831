"""The check of constants of text comparators: patterns, regular expressions and networks."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_network

from tamis.errors import ConditionError, LimitError
from tamis.language import spans
from tamis.language.limits import WILDCARD_LIMIT
from tamis.model.condition import IGNORING_CASE, REGULAR, WITHIN, Predicate
from tamis.model.domain import RefusalError, show
from tamis.model.regular_expressions import regular_expression


def check_text_constant(predicate: Predicate, text: str | None) -> None:
    """Refuse a text that is no pattern, regular expression or network, where it must be one."""
    comparator, value = predicate.comparator.removesuffix(IGNORING_CASE), predicate.value
    span = spans.part_of_predicate(text, predicate, 2)
    given = str(value)
    if comparator == "like" and (len(given) - len(given.rstrip("\\"))) % 2 == 1:
        raise ConditionError(
            "the pattern ends in a lone backslash",
            span=span,
            hint=r"a literal % is written \\% in quotes, a literal backslash \\\\",
        )
    if comparator == "like" and "_" in given and len(given) > WILDCARD_LIMIT:
        raise LimitError(
            f"the pattern has {len(given):,} characters; with a wildcard _ it may have at most "
            f"{WILDCARD_LIMIT:,}",
            span=span,
        )
    if comparator == REGULAR:
        try:
            regular_expression(given)
        except RefusalError as why:
            raise ConditionError(str(why), span=span) from None
    if comparator == WITHIN:
        _check_network(given, predicate, text)


def _check_network(given: str, predicate: Predicate, text: str | None) -> None:
    hint = "write a network as 10.0.0.0/8 or 2001:db8::/32"
    try:
        ip_network(given)
    except ValueError:
        with suppress(ValueError):
            hint = f"write {ip_network(given, strict=False)}"
        raise ConditionError(
            f"{show(given)} is not a network of IPv4 or IPv6",
            span=spans.part_of_predicate(text, predicate, 2),
            hint=hint,
        ) from None
