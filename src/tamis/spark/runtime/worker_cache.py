"""What a worker process keeps between tasks: engines and encoders, each opened once.

Spark keeps its Python workers from task to task, but unpickles the task's function each time. So
costly objects are kept in a module, and found again by what they were made from.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tamis.errors import SparkError
from tamis.files.array_folder import fingerprint
from tamis.model.schema import Schema
from tamis.spark.runtime.worker_gpu import use_given_gpu

if TYPE_CHECKING:
    from tamis.encode.encoder import Encoder
    from tamis.engine import Engine
    from tamis.operators.operator import Operator
    from tamis.operators.registry import Operators

_KEPT = 4  # engines that stay open at least
VERSIONS = 2  # of which all shards stay open: a stream goes over from one to the next
_Value = TypeVar("_Value")


class LruCache(Generic[_Value]):
    """The values that were used last."""

    def __init__(self) -> None:
        self.kept: OrderedDict[Hashable, _Value] = OrderedDict()

    def get(
        self,
        key: Hashable,
        make: Callable[[], _Value],
        most: Callable[[], int],
        drop: Callable[[_Value], object] = lambda value: None,
    ) -> _Value:
        """The value of a key, made if it is missing; then `most` values are kept."""
        if key not in self.kept:
            self.kept[key] = make()
            while len(self.kept) > most():
                drop(self.kept.popitem(last=False)[1])
        self.kept.move_to_end(key)
        return self.kept[key]


_engines: LruCache[tuple[Engine, int]] = LruCache()  # and how many shards their versions have
_lock = Lock()


def open_engine(
    folder: str | os.PathLike[str], operators: bytes = b"", *, shards: int = 1, follows: str = ""
) -> Engine:
    """The engine that was saved to a folder, mapped into memory: neighbours share its pages.

    `operators` are those that `pack_operators` packed. The driver has compared checksums. An engine
    that took the place of another is opened anew. It is one of `shards`, which stay open together.
    One that `follows` a log is only for tasks that extend its schema as the log does.
    """
    path = Path(folder)
    try:
        now = path.stat()
    except OSError as why:
        raise SparkError(
            f"{path}: a worker cannot read it ({why.strerror}); on a cluster the subscriptions "
            "have to be in a folder that all machines share"
        ) from None
    key = (str(path), now.st_dev, now.st_ino, fingerprint(path), operators, follows)

    def opened() -> tuple[Engine, int]:
        limit_threads()
        use_given_gpu()
        from tamis.engine import Engine

        engine = Engine.open(path, verify=False, operators=unpack_operators(operators))
        freeze_objects()
        return engine, shards

    def most() -> int:
        return max(_KEPT, VERSIONS * max(each for _, each in _engines.kept.values()))

    with _lock:
        return _engines.get(key, opened, most, lambda left: left[0].close())[0]


def open_shards(folders: Sequence[str], operators: bytes) -> list[Engine]:
    """All engines of a version."""
    return [open_engine(folder, operators, shards=len(folders)) for folder in folders]


def freeze_objects() -> None:
    """Hide imported and opened objects from the garbage collector: Spark runs it after every task.

    These are more than 100,000 objects, and to visit them takes 40 ms, as long as many a task
    takes. What became garbage since the last time is collected before the rest is frozen. Only in a
    worker: any other process decides for itself.
    """
    from pyspark import TaskContext

    if TaskContext.get() is None:
        return
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def pack_operators(operators: Operators | Operator | Iterable[Operator]) -> bytes:
    """Operators as bytes, by which a worker knows whether it has an engine with just these."""
    from tamis.operators.registry import Operators

    return b"" if operators == () else pickle.dumps(Operators.of(operators), protocol=5)


def unpack_operators(operators: bytes) -> Any:
    """What `pack_operators` packed."""
    return pickle.loads(operators) if operators else ()


def limit_threads() -> None:
    """Spark has a worker for each core: within one, libraries start no threads of their own."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@lru_cache(maxsize=_KEPT)
def schema_encoder(document: str) -> Encoder:
    """The encoder of a schema, given as JSON, to validate events with."""
    from tamis.encode.lines.event_columns import schema_encoder

    made = schema_encoder(document)
    freeze_objects()
    return made


def schema_document(schema: Schema) -> str:
    """A schema as `schema_encoder` takes it."""
    return json.dumps(schema.to_dict())
