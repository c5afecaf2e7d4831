"""Subscriptions of a job: the folders of saved engines that workers map into memory.

Where no folder can be mapped as it is, a copy is saved for the time of the job.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.encode.validation import extends
from tamis.engine import Engine
from tamis.engine.warm_start import plan_for
from tamis.errors import SparkError
from tamis.match.answers import Matches
from tamis.match.capabilities import Plans
from tamis.model.schema import Schema
from tamis.replay.event_source import EventSource, event_sample
from tamis.spark.runtime.worker_cache import pack_operators, unpack_operators
from tamis.store.version import DOCUMENT, Version
from tamis.store.versions import Versions

if TYPE_CHECKING:
    from tamis.operators.operator import Operator


class SavedSubscriptions(NamedTuple):
    """Subscriptions as they were when the job began."""

    folders: tuple[str, ...]  # of engines; several where they are in shards
    operators: bytes
    engines: tuple[Engine, ...]  # of the folders, in this process

    @classmethod
    def open(
        cls, folders: Sequence[str | os.PathLike[str]], operators: bytes
    ) -> SavedSubscriptions:
        """Open engines here, once, to compare checksums: workers do not."""
        engines = [Engine.open(each, operators=unpack_operators(operators)) for each in folders]
        paths = tuple(str(Path(folder).absolute()) for folder in folders)
        return cls(paths, operators, tuple(engines))

    @property
    def schema(self) -> Schema:
        return self.engines[0].schema

    @property
    def texts(self) -> bool:
        """Whether ids are text, or some of them."""
        return any(map(_has_texts, self.engines))

    @property
    def calls(self) -> bool:
        """Whether conditions call operators, which may read any attribute."""
        return any(len(engine.calls) for engine in self.engines)

    @property
    def mentioned(self) -> set[str]:
        """The attributes that some condition mentions, without those that operators read."""
        return {name for engine in self.engines for name in mentioned(engine)}

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def engine_folders(subscriptions: str | os.PathLike[str]) -> list[Path]:
    """The folders of saved engines that an index, a version or a saved engine consists of."""
    path = Path(subscriptions).absolute()
    if not path.is_dir():
        raise SparkError(f"{path}: there is no folder of that name")
    version = Version.open(path) if (path / DOCUMENT).is_file() else Versions(path).latest()
    return [path] if version is None else version.shard_folders


@contextmanager
def held_folders(subscriptions: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """The folders of `engine_folders`; the version is not swept before the block ends."""
    engine_folders(subscriptions)  # refuses a folder without subscriptions
    path = Path(subscriptions).absolute()
    named = Version.open(path) if (path / DOCUMENT).is_file() else None
    index = path if named is None else path.parent
    with Versions(index).held(None if named is None else named.sequence) as version:
        # One that was named is looked up again: it may have gone just before.
        yield engine_folders(subscriptions if version is None or named else version)


@contextmanager
def held_subscriptions(
    subscriptions: str | os.PathLike[str] | Engine,
    scratch: Path,
    events: Callable[[Schema], EventSource],
    operators: Operator | Iterable[Operator] = (),
    latest: Schema | None = None,
) -> Iterator[SavedSubscriptions]:
    """Subscriptions in folders that workers can open: as they are, or copies in `scratch`.

    An engine is copied as it is now. So is a saved one that has not placed its clauses yet, after
    it has seen a sample of the events. A copy follows the `latest` schema of the events, if that
    extends its own. The version is not swept meanwhile.
    """
    with ExitStack() as held:
        if isinstance(subscriptions, Engine):
            given = subscriptions.calls.operators if operators == () else operators
            found = SavedSubscriptions((), pack_operators(given), (subscriptions,))
        else:
            folders = held.enter_context(held_folders(subscriptions))
            found = SavedSubscriptions.open(folders, pack_operators(operators))
            held.callback(found.close)
        paths, engines = list(found.folders) or [""], list(found.engines)
        for at, given_engine in enumerate(engines):
            engine, placed = given_engine, laid_out(given_engine)
            if latest is not None and engine.schema != latest and extends(latest, engine.schema):
                engine, placed = copy.deepcopy(engine), False
                engine.extend(latest)
                engines[at] = engine
            if not placed:
                plan_for(engine, event_sample(events(engine.schema), engine.schema.attributes))
            if not placed or not paths[at]:
                paths[at] = str(scratch / f"engine-{at}")
                engine.save(paths[at])
        yield found._replace(folders=tuple(paths), engines=tuple(engines))


def laid_out(engine: Engine) -> bool:
    """Whether an engine has placed its clauses.

    One that was saved before it saw an event has not: each worker would place them for itself, and
    share nothing with the others.
    """
    matcher = engine.matcher
    return not len(engine) or not isinstance(matcher, Plans) or matcher.planned


def mentioned(engine: Engine) -> set[str]:
    """The attributes that conditions of an engine mention, without those that operators read."""
    clauses = engine.matcher.clauses
    _, (attribute, *_) = clauses.terms(clauses.live_slots())
    names = list(engine.schema.attributes)
    indexed = {names[at] for at in np.unique(attribute).tolist()}
    return indexed | engine.residuals.mentioned(names)


def _has_texts(engine: Engine) -> bool:
    nothing = Matches(np.zeros(1, np.int64), np.zeros(0, np.int64))
    return bool(engine.slot_table.with_ids(nothing).subscriptions.dtype == object)
