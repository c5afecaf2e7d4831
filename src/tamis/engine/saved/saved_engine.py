"""Save an engine to a folder, and open it again.

All state of an engine goes into one folder (see `files.array_folder`): arrays as they are, text as
Arrow files, the rest as JSON facts. Opening maps the files and copies nothing that grows with the
number of subscriptions, except the text constants. The folder holds no code.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from tamis import __version__
from tamis.encode.encoder import Encoder, numbers_in
from tamis.encode.labels import Labels, LabelState
from tamis.encode.terms import joined
from tamis.engine.doors.event_moments import depends_on_now
from tamis.engine.element_engine import element_engine, restore_numbers, saved_numbers
from tamis.engine.saved.saved_part import SavedPart, blobs, columns, texts
from tamis.errors import MatcherError, OperatorError, SavedIndexError, SchedulerError, SchemaError
from tamis.files.array_folder import Saved, read, write
from tamis.files.arrays import Arrays, add_prefix, take_prefix
from tamis.files.saved_checks import array_of, require, whole
from tamis.match.base import Matcher
from tamis.match.capabilities import layout_of, restore, saved_form
from tamis.match.registry import create, name_of
from tamis.model.schema import Schema
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

    AnEngine = TypeVar("AnEngine", bound=Engine)

CONTENTS = 2  # version of the parts and their arrays; increase it when they change
_RESIDUALS = 3  # with residuals, which an earlier tamis would not verify
_ELEMENTS = 4  # with conditions on elements
_MOMENTS = 5  # with conditions that mention now
_PRIORITIES = 6  # with priorities, which an earlier tamis would lose
_READ = (CONTENTS, _RESIDUALS, _ELEMENTS, _MOMENTS, _PRIORITIES)


def save(engine: Engine, folder: str | os.PathLike[str], replace: bool) -> None:
    """Write an engine to a folder."""
    parts, facts = _saved(engine)
    arrays = Arrays()
    for name, each in parts.items():
        arrays.update(add_prefix(name, each.arrays))
    write(folder, arrays, facts, blobs(parts), replace=replace, written_by=__version__)


def _saved(engine: Engine) -> tuple[dict[str, SavedPart], dict[str, Any]]:
    """All parts of an engine, and of its engines for elements under names of their own."""
    matcher = engine.matcher
    form = saved_form(matcher)
    parts = {
        **engine.slot_table.saved(),
        "patterns": engine.patterns.saved(),
        **({"residuals": engine.residuals.saved()} if len(engine.residuals) else {}),
        "calls": engine.calls.saved(),
        "constants": _constants(engine.encoder),
        "matcher": SavedPart(form.arrays, form.facts, {}),
    }
    facts = {
        "contents": _RESIDUALS if len(engine.residuals) else CONTENTS,
        "scheduler": engine.calls.scheduler_name,
        "schema": engine.schema.to_dict(),
        "made_by": {**_made_by(matcher), "layout": form.layout},
        "parts": {name: each.facts for name, each in parts.items()},
    }
    elements: dict[str, Any] = {}
    for at, conditions in engine.encoder.elements.items():
        if conditions.engine is not None and len(conditions.engine):
            inner, elements[str(at)] = _saved(cast("Engine", conditions.engine))
            parts |= {f"{_prefix(at)}{name}": each for name, each in inner.items()}
            numbers = saved_numbers(conditions)
            parts[f"{_prefix(at)}{_NUMBERS}"] = numbers
            elements[str(at)]["parts"][_NUMBERS] = numbers.facts
    if elements:
        facts |= {"contents": _ELEMENTS, "elements": elements}
    if depends_on_now(engine):
        facts["contents"] = _MOMENTS
    if "priority" in parts["roster"].arrays:
        facts["contents"] = _PRIORITIES
    return parts, facts


_NUMBERS = "numbers"


def _prefix(attribute: int) -> str:
    return f"elements{attribute}."


def open_engine(
    kind: type[AnEngine],
    folder: str | os.PathLike[str],
    verify: bool,
    operators: Operator | Iterable[Operator] | Operators,
    scheduler: str | None,
    options: Mapping[str, Any],
) -> AnEngine:
    """The engine that was saved to a folder."""
    saved = read(folder, verify=verify)
    with _reading(folder):
        contents = saved.facts.get("contents")
        if contents not in _READ:
            raise SavedIndexError(
                f"it holds an engine in format {contents!r}, and this tamis reads formats "
                f"{CONTENTS} to {_READ[-1]}; open it with the tamis that wrote it"
            )
        matcher = _matcher(saved.facts, options)
        engine = kind(
            Schema.from_dict(saved.facts["schema"]),
            matcher,
            operators=operators,
            scheduler=scheduler or saved.facts["scheduler"],
        )
        _restore(engine, saved, saved.facts, "", verify)
        return engine


def _matcher(facts: Mapping[str, Any], options: Mapping[str, Any]) -> Matcher:
    """An empty matcher like the one that was saved."""
    made_by = facts["made_by"]
    fits = isinstance(made_by["name"], str) and isinstance(facts["scheduler"], str)
    require(fits, "the matcher and the scheduler have names")
    matcher = create(made_by["name"], **{**made_by["options"], **options})
    if made_by["layout"] != layout_of(matcher):
        raise SavedIndexError(
            f"matcher {made_by['name']!r} saved it in layout {made_by['layout']}, and this "
            f"tamis has layout {layout_of(matcher)}; open it with the tamis that wrote it"
        )
    return matcher


def _restore(
    engine: Engine, saved: Saved, facts: Mapping[str, Any], prefix: str, verify: bool
) -> None:
    """Restore the parts whose names begin with the prefix."""
    matcher = engine.matcher
    names = ("roster", "ids", "sources", "patterns", "calls", "constants")
    parts = {name: _part(saved, facts, prefix, name, verify) for name in names}
    form = take_prefix(f"{prefix}matcher", saved.arrays), facts["parts"]["matcher"]
    width = len(engine.schema.attributes)
    restore(matcher, *form, width if verify else None)
    live = matcher.clauses.live_slots() if verify else None
    engine.slot_table.restore(parts, live)
    engine.patterns.restore(parts["patterns"], verify=verify)
    if "residuals" in facts["parts"]:
        residuals = _part(saved, facts, prefix, "residuals", verify)
        engine.residuals.restore(residuals, width, live)
    engine.calls.restore(parts["calls"], engine.schema, live)
    _restore_constants(engine.encoder, parts["constants"], verify)
    fits = engine.patterns.counts() == dict(engine.encoder.patterned)
    require(fits, "'patterned' counts the text patterns")
    for at, conditions in engine.encoder.elements.items():
        inner = facts.get("elements", {}).get(str(at))
        if inner is not None:
            below = f"{prefix}{_prefix(at)}"
            element = conditions.element
            if element.is_open:  # its attributes are in an order of their own
                element = Schema.from_dict(inner["schema"])
            made = element_engine(element, _matcher(inner, {}))
            _restore(made, saved, inner, below, verify)
            numbers = _part(saved, inner, below, _NUMBERS, verify)
            restore_numbers(conditions, made, numbers)
        if live is not None:
            terms = joined((matcher.terms(live), engine.residuals.terms()))
            fits = Counter(numbers_in(terms, at)) == conditions.uses
            require(fits, "'uses' counts conditions on elements")


def _part(
    saved: Saved, facts: Mapping[str, Any], prefix: str, name: str, verify: bool
) -> SavedPart:
    tables = columns(f"{prefix}{name}", saved.blobs, verify=verify)
    return SavedPart(take_prefix(f"{prefix}{name}", saved.arrays), facts["parts"][name], tables)


@contextmanager
def _reading(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Name the folder in errors, and report every inconsistency as a `SavedIndexError`."""
    where = os.fspath(folder)
    try:
        yield
    except (SavedIndexError, MatcherError, OperatorError, SchedulerError, SchemaError) as why:
        raise type(why)(f"{where}: {why}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as why:
        raise SavedIndexError(
            f"{where}: is inconsistent ({type(why).__name__}: {why}); was it edited?"
        ) from why


# -- the matcher -----------------------------------------------------------------------------------


def _made_by(matcher: Matcher) -> dict[str, Any]:
    """The name and the options from which an equal matcher is created."""
    name, kind = name_of(matcher), type(matcher)
    if name is None:
        raise SavedIndexError(
            f"a {kind.__name__} cannot be saved: it is not registered, so it could not be created "
            "again; see tamis.match.registry.register"
        )
    options = {
        option: value for option, value in matcher.given.items() if matcher.options()[option].saved
    }
    for option, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise SavedIndexError(
                f"matcher {name!r} cannot be saved with {option}={value!r}; a saved option is a "
                "number, a text, a boolean or a list of these"
            ) from None
    return {"name": name, "options": options}


# -- text constants --------------------------------------------------------------------------------


def _constants(encoder: Encoder) -> SavedPart:
    states = {at: labels.state() for at, labels in encoder.labels.items()}
    sizes = [len(state.texts) for state in states.values()]
    none = np.zeros(0, np.int64)
    constants = [text for state in states.values() for text in state.texts]
    return SavedPart(
        {
            "label": np.concatenate([none, *(state.labels for state in states.values())]),
            "uses": np.concatenate([none, *(state.uses for state in states.values())]),
        },
        {
            "labels": [
                {"attribute": at, "size": size, "last": state.last, "side": state.side}
                for (at, state), size in zip(states.items(), sizes, strict=True)
            ],
            "patterned": sorted((+encoder.patterned).items()),
        },
        {"texts": {"text": pa.array(constants, pa.large_string())}},
    )


def _restore_constants(encoder: Encoder, saved: SavedPart, verify: bool) -> None:
    column, label, uses = (
        texts(saved, "texts", "text"),
        array_of(saved.arrays, "label"),
        array_of(saved.arrays, "uses"),
    )
    listed, first = saved.facts["labels"], 0
    fits = sorted(facts["attribute"] for facts in listed) == sorted(encoder.labels)
    require(fits, "each attribute of text has its constants")
    for facts in listed:
        mine = slice(first, first + whole(facts, "size"))
        first = mine.stop
        encoder.labels[facts["attribute"]] = Labels.restored(
            LabelState(
                column[mine].to_pylist(), label[mine], uses[mine], facts["last"], facts["side"]
            ),
            verify=verify,
        )
    require(first == len(column) == len(label) == len(uses), "each constant has a label")
    encoder.patterned = Counter(dict(saved.facts["patterned"]))
