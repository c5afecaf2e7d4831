"""Conditions that are valid but mean something else than most people think.

They are refused when somebody subscribes with a text, with the spellings to choose from. A
condition that was accepted before keeps its meaning: extending a schema by an attribute must not
break it. A word that is a value of the attribute's own domain is not in doubt.
"""

from __future__ import annotations

from tamis.errors import ConditionError, Span
from tamis.language import spans
from tamis.model.condition import ORDER, Predicate, Word
from tamis.model.named_domains import Enumerated, Hierarchy
from tamis.model.printer import name_text
from tamis.model.schema import EVENT_TYPE, Schema
from tamis.model.times.moments import NOW_WORDS

_NULLS = ("null", "none", "nil")


def doubtful_words(schema: Schema) -> set[str]:
    """The bare words that `refuse_pitfalls` looks at; the second kind in any case.

    The attributes of an open schema are those that others happen to have mentioned: no reason to
    refuse a word.
    """
    doubtful = {*_NULLS, *NOW_WORDS}
    return doubtful if schema.is_open else {*schema.attributes, *doubtful}


def refuse_pitfalls(predicate: Predicate, schema: Schema, text: str | None, stem: str = "") -> None:
    """Refuse bare words that name an attribute, `= null`, and `contains` for a part of a text.

    In the text, names of attributes begin with the stem.
    """
    value, domain = predicate.value, schema.attributes[predicate.attribute]
    names = domain.values if isinstance(domain, Enumerated | Hierarchy) else ()
    for position, item in enumerate(value if isinstance(value, tuple) else (value,)):
        if not isinstance(item, Word) or item in names:
            continue
        if item in NOW_WORDS and domain.kind == "dynamic":
            _refuse_now(predicate, item, spans.part_of_predicate(text, predicate, 2), stem)
        named = item.startswith(stem) and item.removeprefix(stem) in schema.attributes
        if (named and not schema.is_open) or item.lower() in _NULLS:
            span = spans.part_of_predicate(text, predicate, 2 + position)
            _refuse_null(predicate, item, span, stem, domain.kind == "dynamic")
            _refuse_attribute_name(item, span)
    if predicate.comparator in ("contains", "excludes") and _single_text(predicate, schema):
        negated = "not " if predicate.comparator == "excludes" else ""
        name = name_text(stem + predicate.attribute)
        raise ConditionError(
            f"{stem + predicate.attribute!r} has one value, so {predicate.comparator!r} would "
            "compare the whole text",
            span=spans.part_of_predicate(text, predicate, 1),
            hint=f'for a part of the text, write {negated}{name} has substring "…"; for the whole '
            f"text, write {name} {'!=' if negated else '='} …",
        )


def _refuse_attribute_name(word: Word, span: Span | None) -> None:
    """Refuse a bare word that names an attribute: its value or the text may be meant."""
    raise ConditionError(
        f"{str(word)!r} is an attribute",
        span=span,
        hint=f'write @{name_text(word)} for its value, or "{word}" for the text',
    )


def _refuse_now(predicate: Predicate, word: Word, span: Span | None, stem: str) -> None:
    """Refuse an order of texts before and after the word `now`: the moment is meant."""
    if predicate.comparator in ORDER:
        name = stem + predicate.attribute
        raise ConditionError(
            f"{str(word)!r} is a word here, not the moment: {name!r} is no timestamp",
            span=span,
            hint=f'declare it as a timestamp in a schema, or write "{word}" for the text',
        )


def _refuse_null(
    predicate: Predicate, word: Word, span: Span | None, stem: str, dynamic: bool
) -> None:
    if word.lower() in _NULLS:
        name = name_text(stem + predicate.attribute)
        bound = predicate.comparator == "!="
        state = "exists" if bound else "missing"
        if predicate.comparator in ("=", "!=") and dynamic:
            state = "is not null" if bound else "is null"
        meant = "if there must be a value" if bound else "for the absent value"
        raise ConditionError(
            f"{str(word)!r} is a word here, not an absent value",
            span=span,
            hint=f'write {name} {state} {meant}, or "{word}" for the text',
        )


def _single_text(predicate: Predicate, schema: Schema) -> bool:
    name = predicate.attribute
    texts = ("text", "dynamic") if isinstance(predicate.value, str) else ("text",)
    if name == EVENT_TYPE or schema.is_open or schema.attributes[name].kind not in texts:
        return False
    uses = [view[name] for view in schema.event_types.values() if name in view]
    return not any(use.multiple for use in uses)
