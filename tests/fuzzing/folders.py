"""Folders whose files are damaged: saved indexes, versions, manifests, logs."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from tamis.engine import Engine
from tamis.replay.manifests import manifests, put
from tamis.store import Log, Shard, Versions, describe
from tests.fuzzing.texts import dumped, garbled, utf8
from tests.fuzzing.values import mutated
from tests.fuzzing.world import DOCUMENT, FuzzedWorld


class Folders:
    """Whole folders, from which damaged ones are made."""

    def __init__(self, world: FuzzedWorld) -> None:
        self._place = place = world.folder / "folders"
        place.mkdir()
        self._saved = place / "saved"
        world.engine.save(self._saved)
        versions = Versions(place / "index")
        with versions.publish(42) as folder:
            (folder / "shard-0000").mkdir()
            shards = [Shard("shard-0000", 3, 100)]
            describe(folder, sequence=42, schema=DOCUMENT, ids="text", shards=shards)
        versions.pin("query", 7)
        versions.retain("reader", 42)
        part = {"folder": "notifications", "name": "a.parquet", "rows": 1, "bytes": 9}
        facts = {"query": "q", "batch": 3, "offsets": {}}
        put(place / "out", "q-0000000003-5", facts, [part])
        Log.create(place / "log", DOCUMENT)
        self._documents = {
            path: path.read_bytes() for path in place.rglob("*.json") if path.is_file()
        }

    def saved_bytes(self, draw: random.Random) -> None:
        """A saved index with other bytes."""
        forged = self._place / "bytes"
        shutil.rmtree(forged, ignore_errors=True)
        shutil.copytree(self._saved, forged)
        path = forged / draw.choice(("manifest", "data"))
        data = bytearray(path.read_bytes())
        at = draw.randrange(len(data))
        data[at] ^= 1 << draw.randrange(8)
        path.write_bytes(data[: draw.choice((len(data), at))])
        with Engine.open(forged) as engine:
            engine.match({"price": 1})

    def documents(self, draw: random.Random) -> None:
        """A document of a folder that is garbled or says something else."""
        path = draw.choice(list(self._documents))
        whole = self._documents[path]
        if draw.random() < 0.5:
            path.write_bytes(utf8(garbled(whole.decode(), draw), draw))
        else:
            path.write_bytes(utf8(dumped(mutated(json.loads(whole), draw)), draw))
        try:
            self._read(path)
        finally:
            path.write_bytes(whole)

    def _read(self, path: Path) -> None:
        place = self._place
        if (place / "index") in path.parents:
            versions = Versions(place / "index")
            for version in versions.all():
                _ = version.shards, version.made, version.shard_folders
            versions.pin("query", 7)
            versions.sweep(100)
        elif (place / "out") in path.parents:
            manifests(place / "out")
        else:
            log = Log.open(place / "log")
            _ = log.end, log.schema
