"""Subscriptions for a job: the folders that they are in, as they were when it began.

Workers map these into memory. Where there is no folder that they could map as it is, a copy is made
for the time of the job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.engine import Engine
from tamis.engine.warm_start import plan_for
from tamis.errors import SparkError
from tamis.match.answers import Matches
from tamis.match.capabilities import Plans
from tamis.model.schema import Schema
from tamis.replay.event_source import Events, sampled
from tamis.spark.runtime.worker_cache import packed, unpacked
from tamis.store.version import DOCUMENT, Version
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from tamis.operators.operator import Operator


class Subscriptions(NamedTuple):
    """Subscriptions as they were when the job began."""

    folders: tuple[str, ...]
    operators: bytes
    engines: tuple[Engine, ...]  # of the folders, in this process

    @property
    def schema(self) -> Schema:
        """Of the events."""
        return self.engines[0].schema

    @property
    def texts(self) -> bool:
        """Whether ids are text."""
        return any(has_texts(engine) for engine in self.engines)

    @property
    def calls(self) -> bool:
        """Whether conditions call operators, which may read any attribute."""
        return any(len(engine.calls) for engine in self.engines)

    @property
    def mentioned(self) -> set[str]:
        """Attributes that some condition asks for."""
        return {name for engine in self.engines for name in mentioned(engine)}


def engine_folders(subscriptions: str | os.PathLike[str]) -> list[Path]:
    """The folders of saved engines that an index, a version or a saved engine consists of."""
    path = Path(subscriptions).absolute()
    if not path.is_dir():
        raise SparkError(f"{path}: there is no folder of that name")
    version = Version.open(path) if (path / DOCUMENT).is_file() else Versions(path).latest()
    return [path] if version is None else version.shard_folders


@contextmanager
def used_folders(subscriptions: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """The same, and nobody sweeps the version before the block is over."""
    engine_folders(subscriptions)  # refuses what is none
    path = Path(subscriptions).absolute()
    named = Version.open(path) if (path / DOCUMENT).is_file() else None
    index = path if named is None else path.parent
    with Versions(index).held(None if named is None else named.sequence) as version:
        # One that was named is looked at again: it may have gone just before.
        yield engine_folders(subscriptions if version is None or named else version)


@contextmanager
def taken(
    subscriptions: str | os.PathLike[str] | Engine,
    above: Path,
    events: Callable[[Schema], Events],
    operators: Operator | Iterable[Operator] = (),
) -> Iterator[Subscriptions]:
    """Subscriptions in folders that workers can open: as they are, or else copies in `above`.

    An engine is copied as it is now, and so is one that has not decided where its clauses lie,
    after some of the events have told it. Nobody sweeps a version meanwhile.
    """
    held = ExitStack()
    mine = isinstance(subscriptions, Engine)  # the caller's own, which is not closed here
    if isinstance(subscriptions, Engine):
        given = packed(subscriptions.calls.operators if operators == () else operators)
        known: Iterable[tuple[Path | None, Engine]] = [(None, subscriptions)]
    else:
        given = packed(operators)
        known = _opened(held.enter_context(used_folders(subscriptions)), given)
    folders: list[str] = []
    engines: list[Engine] = []
    with held:
        for folder, engine in known:
            engines.append(engine)
            if not mine:
                held.callback(engine.close)
            if folder is None or not laid_out(engine):
                folder = above / f"engine-{len(folders)}"  # noqa: PLW2901 - a copy is taken for it
                if not laid_out(engine):
                    schema = engine.schema
                    plan_for(engine, sampled(events(schema), schema.attributes))
                engine.save(folder)
            folders.append(str(folder))
        yield Subscriptions(tuple(folders), given, tuple(engines))


def _opened(folders: Iterable[Path], operators: bytes) -> Iterator[tuple[Path | None, Engine]]:
    for folder in folders:
        # Checksums are compared here, once, and not by every worker.
        yield folder, Engine.open(folder, operators=unpacked(operators))


def laid_out(engine: Engine) -> bool:
    """Whether an engine has decided where its clauses lie.

    One that was saved before it saw an event has not: each worker would decide for itself, and
    keep what it makes of that to itself, instead of sharing one copy.
    """
    matcher = engine.matcher
    return not len(engine) or not isinstance(matcher, Plans) or matcher.planned


def mentioned(engine: Engine) -> set[str]:
    """The attributes that the conditions of an engine ask for, less what operators read."""
    clauses = engine.matcher.clauses
    _, (attribute, *_) = clauses.terms(clauses.live_slots())
    names = list(engine.schema.attributes)
    return {names[at] for at in np.unique(attribute).tolist()}


def has_texts(engine: Engine) -> bool:
    """Whether ids of an engine are text, or some of them."""
    nothing = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64))
    return bool(engine.slot_table.with_ids(nothing).subscriptions.dtype == object)
