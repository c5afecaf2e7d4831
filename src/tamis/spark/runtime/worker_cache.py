"""What lives in a worker process: engines and encoders, opened once and kept between tasks.

Spark keeps its Python workers from task to task, but unpickles the task's function each time. So
what is costly to make is kept here, in a module, and found again by what it was made from.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tamis.errors import SparkError
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.encode.encoder import Encoder
    from tamis.engine import Engine
    from tamis.operators.operator import Operator
    from tamis.operators.registry import Operators

_KEPT = 4  # engines that stay open at least
_VERSIONS = 2  # of which all shards stay open: a stream goes over from one to the next

# With how many shards its subscriptions are in.
_engines: OrderedDict[tuple[Any, ...], tuple[Engine, int]] = OrderedDict()
_lock = Lock()


def opened(folder: str | os.PathLike[str], operators: bytes = b"", *, shards: int = 1) -> Engine:
    """The engine that was saved to a folder, mapped into memory: neighbours share its pages.

    `operators` are those that `packed` has packed. Its checksums were compared by the driver, which
    opened it first. An engine that was put in the place of another is opened anew. It is one of
    `shards`, all of which stay open together.
    """
    path = Path(folder)
    try:
        now = path.stat()
    except OSError as why:
        raise SparkError(
            f"{path}: a worker cannot read it ({why.strerror}); on a cluster the subscriptions "
            "have to be in a folder that all machines share"
        ) from None
    key = (str(path), now.st_dev, now.st_ino, now.st_mtime_ns, operators)
    with _lock:
        if key not in _engines:
            one_thread()
            from tamis.engine import Engine

            engine = Engine.open(path, verify=False, operators=unpacked(operators))
            _engines[key] = engine, shards
            most = max(_KEPT, _VERSIONS * max(each for _, each in _engines.values()))
            while len(_engines) > most:
                _engines.popitem(last=False)[1][0].close()
            _settled()
        _engines.move_to_end(key)
        return _engines[key][0]


def _settled() -> None:
    """Spark looks for garbage after every task. What was imported and opened is none.

    These are more than 100,000 objects, and to look at them all takes 40 ms, as long as many a task
    does. What has become garbage since the last time is collected before the rest is put aside.
    Only in a worker: in any other process that is not ours to decide.
    """
    from pyspark import TaskContext

    if TaskContext.get() is None:
        return
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def packed(operators: Operators | Operator | Iterable[Operator]) -> bytes:
    """Operators as bytes, which tell a worker whether it has an engine with just these."""
    from tamis.operators.registry import Operators

    return b"" if operators == () else pickle.dumps(Operators.of(operators), protocol=5)


def unpacked(operators: bytes) -> Any:
    """What `packed` has packed."""
    return pickle.loads(operators) if operators else ()


def one_thread() -> None:
    """Spark has a worker for each core: within one, libraries start no threads of their own."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@lru_cache(maxsize=_KEPT)
def encoder(document: str) -> Encoder:
    """The encoder of a schema, given as JSON, to check events with."""
    from tamis.replay.encoders import schema_encoder

    made = schema_encoder(document)
    _settled()
    return made


def document(schema: Schema) -> str:
    """A schema as `encoder` takes it."""
    return json.dumps(schema.to_dict())
