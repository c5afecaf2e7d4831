"""Notifications of a stream to a topic of Kafka: a thread that follows the manifests.

The files are written exactly once, whatever Kafka does. The follower sends what each manifest adds,
waits for the acknowledgements, and then writes how far it has come. If it is killed in between, the
next start sends some messages again, with the same ids.

    OUT/kafka/TOPIC.json    all notifications of events before `sequence` are acknowledged
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import SparkError, StoreError, TamisError
from tamis.files.json_document import read_json, write_json
from tamis.files.names import names_in
from tamis.files.sync import make_folder
from tamis.replay.manifests import MANIFESTS, manifests
from tamis.replay.notification_id import notification_id
from tamis.replay.parts import NOTIFICATIONS, SEQUENCE, SUBSCRIPTION
from tamis.replay.topic_producer import TopicMessage, TopicProducer, TopicsError, read_properties

FOLDER = "kafka"
PAGE = 5000  # messages that are acknowledged together
_FORMAT = 1
_LOOK = 0.25  # seconds between two looks at the manifests


class TopicTarget(NamedTuple):
    """Where notifications go besides files."""

    brokers: str
    topic: str
    properties: Path | None = None

    @classmethod
    def parse(cls, text: str, properties: Path | None = None) -> TopicTarget:
        """From BROKERS/TOPIC, such as `localhost:9092/alerts`."""
        brokers, slash, topic = text.rpartition("/")
        if not slash or not brokers or not topic or "/" in brokers:
            raise SparkError(
                f"{text!r} is not BROKERS/TOPIC, such as localhost:9092/alerts; several brokers "
                "have commas between them"
            )
        return cls(brokers, topic, properties)


class TopicFollower:
    """Sends what the manifests of one query name, from where it was before.

    Args:
        target: the brokers and the topic.
        out: the folder of notifications.
        query: whose manifests count.
        identity: of the log, for the ids of messages.
    """

    def __init__(self, target: TopicTarget, out: Path, query: str, identity: str) -> None:
        self._target, self._out, self._query, self._identity = target, out, query, identity
        self._stopping, self._ending = Event(), Event()
        properties = {} if target.properties is None else read_properties(target.properties)
        self._producer = TopicProducer(target.brokers, properties, self._stopping.is_set)
        self._cursor = self._read_cursor()
        self._seen: frozenset[str] = frozenset()
        self.sent = 0
        self.failure: TamisError | None = None
        self._thread = Thread(target=self._run, name="tamis-kafka", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def unreachable(self) -> str | None:
        """Why no broker answers now, if that is so."""
        return self._producer.unreachable

    def finish(self) -> None:
        """End when everything that is committed now is acknowledged. Returns at once."""
        self._ending.set()

    def stop(self) -> None:
        """End soon; the next start sends what was not acknowledged."""
        self._stopping.set()
        self._thread.join()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                last = self._ending.is_set()  # before the look: it sees all that is committed
                try:
                    self._look()
                except TopicsError:
                    self._seen = frozenset()  # from the cursor again, unless it is to stop
                    last = False
                if last:
                    break
                self._stopping.wait(_LOOK)
        except TamisError as why:
            self.failure = why
        except (OSError, pa.ArrowException) as why:
            self.failure = StoreError(f"{self._out}: cannot be read: {why}")
        finally:
            self._producer.close()

    def _look(self) -> None:
        """Send what has been committed since the last look."""
        try:
            names = frozenset(names_in(self._out / MANIFESTS))
        except FileNotFoundError:
            return
        if names == self._seen:
            return
        mine = [each for each in manifests(self._out) if each.get("query") == self._query]
        for manifest in sorted(mine, key=lambda each: int(each["batch"])):
            end = int(manifest["offsets"][0]["sequence"])
            if end <= self._cursor:
                continue
            try:
                self._send(self._rows(manifest))
            except FileNotFoundError:  # merged meanwhile: seen with the next look
                return
            self._cursor = end
            self._write_cursor()
        self._seen = names

    def _rows(self, manifest: dict[str, Any]) -> pa.Table | None:
        """The notifications of a manifest that were not sent, in the order of the log."""
        parts = [
            pq.read_table(
                self._out / NOTIFICATIONS / part["name"],
                filters=pc.field(SEQUENCE) >= self._cursor,
            )
            for part in manifest["parts"]
            if part["folder"] == NOTIFICATIONS
        ]
        if not parts:
            return None
        return pa.concat_tables(parts, promote_options="default").sort_by(SEQUENCE)

    def _send(self, rows: pa.Table | None) -> None:
        if rows is None:
            return
        columns = [name for name in rows.column_names if name not in (SEQUENCE, SUBSCRIPTION)]
        for at in range(0, rows.num_rows, PAGE):
            page = [self._message(row, columns) for row in rows.slice(at, PAGE).to_pylist()]
            refused = self._producer.send(page)
            if refused:
                place, why = next(iter(refused.items()))
                raise SparkError(
                    f"the topic {self._target.topic!r} refuses the notification {page[place].id}: "
                    f"{why}; the files have it, and the next run sends it again"
                )
            self.sent += len(page)

    def _message(self, row: dict[str, Any], columns: list[str]) -> TopicMessage:
        sequence, subscription = row[SEQUENCE], row[SUBSCRIPTION]
        data: dict[str, Any] = {SEQUENCE: sequence, SUBSCRIPTION: subscription}
        if columns:
            data["event"] = {name: row[name] for name in columns if row[name] is not None}
        return TopicMessage(
            self._target.topic,
            str(subscription),
            json.dumps(data, default=_plain, ensure_ascii=False).encode(),
            notification_id(self._identity, sequence, subscription),
        )

    # -- the cursor ------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self._out / FOLDER / f"{self._target.topic}.json"

    def _read_cursor(self) -> int:
        if not self._path.exists():
            return 0
        kept = read_json(self._path, "a cursor of a topic", StoreError, newest=_FORMAT)
        if kept.get("query") != self._query:
            raise SparkError(
                f"{self._path}: is of another stream; remove it, and everything that "
                f"{self._out} holds is sent again"
            )
        return int(kept["sequence"])

    def _write_cursor(self) -> None:
        make_folder(self._path.parent)
        kept = {"format": _FORMAT, "query": self._query, "sequence": self._cursor}
        write_json(self._path, kept)


def _plain(value: Any) -> Any:
    """A value that JSON lacks: times are as in ISO 8601."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
