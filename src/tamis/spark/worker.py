"""What lives in a worker process: engines and encoders, opened once and kept between tasks.

Spark keeps its Python workers from task to task, but unpickles the task's function each time. So
what is costly to make is kept here, in a module, and found again by what it was made from.
"""

from __future__ import annotations

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

_KEPT = 4  # engines that stay open; a stream goes over from one version to the next

_engines: OrderedDict[tuple[Any, ...], Engine] = OrderedDict()
_lock = Lock()


def opened(folder: str | os.PathLike[str], operators: bytes = b"") -> Engine:
    """The engine that was saved to a folder, mapped into memory: neighbours share its pages.

    `operators` are those that `packed` has packed. Its checksums were compared by the driver, which
    opened it first. An engine that was put in the place of another is opened anew.
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
        engine = _engines.get(key)
        if engine is None:
            one_thread()
            from tamis.engine import Engine

            given = pickle.loads(operators) if operators else ()
            engine = _engines[key] = Engine.open(path, verify=False, operators=given)
            while len(_engines) > _KEPT:
                _engines.popitem(last=False)[1].close()
        _engines.move_to_end(key)
        return engine


def packed(operators: Operators | Operator | Iterable[Operator]) -> bytes:
    """Operators as bytes, which tell a worker whether it has an engine with just these."""
    from tamis.operators.registry import Operators

    return b"" if operators == () else pickle.dumps(Operators.of(operators), protocol=5)


def one_thread() -> None:
    """Spark has a worker for each core: within one, libraries start no threads of their own."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@lru_cache(maxsize=_KEPT)
def encoder(document: str) -> Encoder:
    """The encoder of a schema, given as JSON, to check events with."""
    from tamis.encode.encoder import Encoder

    return Encoder(Schema.from_dict(json.loads(document)))


def document(schema: Schema) -> str:
    """A schema as `encoder` takes it."""
    return json.dumps(schema.to_dict())
