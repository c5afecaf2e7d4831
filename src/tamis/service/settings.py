"""The settings of a server. A new one is one line here, or in a group such as `Limits`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from tamis.broker.delivery.kafka_settings import KafkaSettings
from tamis.broker.limits import Limits
from tamis.broker.setting import Bytes, group, setting
from tamis.errors import SettingError
from tamis.replay.matching_shifts import SPARK, WAYS
from tamis.service.listen_address import ListenAddress


@dataclass(frozen=True)
class Settings:
    """How a server is run. `configuration` reads it from options, variables and a file."""

    folder: Path = setting(Path("data"), "The data folder.")
    listen: tuple[str, ...] = setting(
        ("127.0.0.1:8080",), "Where to listen: HOST:PORT or unix:PATH; may be repeated."
    )
    grpc: str | None = setting(None, "Where to listen for gRPC: HOST:PORT or unix:PATH.")
    schema: Path | None = setting(
        None, "Schema of a new log (YAML or JSON); without one, the log takes any JSON."
    )
    keys: bool | None = setting(
        None, "Whether callers need a key; by default, only if other machines can call."
    )
    allow_sink: tuple[str, ...] = setting(
        (), "Also send webhooks to this address, network or host; may be repeated."
    )
    operators: tuple[str, ...] = setting(
        (),
        "Operators that conditions may call: packs, single operators or modules; may be repeated.",
    )
    database: str | None = setting(
        None,
        "PostgreSQL database that several services share, postgresql://HOST/NAME; the folder then "
        "holds copies.",
        secret=True,
    )
    matching: str | None = setting(
        None,
        "Who matches from now on: inline (this process) or spark (`tamis spark run --data`); by "
        "default, whoever matched last, and inline in a new folder.",
    )
    quick_start: bool = setting(
        True,
        "Whether a simple matcher stands in while the default one is compiled, the first time on a "
        "machine.",
    )
    rebuild: bool = setting(False, "Rebuild the state database from the log.")
    body_bytes: Bytes = setting(Bytes(16 << 20), "Largest body of a request.", least=1)
    longest_wait: timedelta = setting(
        timedelta(minutes=1), "Longest time that a request may wait for notifications."
    )
    slow_reader: timedelta = setting(
        timedelta(seconds=30), "How long an answer waits for a reader that takes nothing."
    )
    slow_request: timedelta = setting(
        timedelta(seconds=30),
        "How long a request may take to arrive; a body has a second more for every 10 KiB.",
        least=0.1,
    )
    tls_certificate: Path | None = setting(None, "The certificate chain for TLS (PEM).")
    tls_key: Path | None = setting(None, "The private key of the certificate (PEM).")
    log_format: Literal["auto", "text", "json"] = setting(
        "auto", "Format of logs; auto is text on a terminal and JSON elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "Lowest level that is logged; debug logs every request."
    )
    keep_events: timedelta | None = setting(
        None, "How long events are kept; by default, forever.", least=900
    )
    keep_event_bytes: Bytes | None = setting(
        None, "About how many bytes of the log are kept; by default, all.", least=1 << 20
    )
    keep_notifications: timedelta | None = setting(
        None, "How long notifications are kept; by default, forever.", least=60
    )
    limits: Limits = group(Limits, "limit")
    kafka: KafkaSettings = group(KafkaSettings, "kafka")

    def check(self) -> None:
        """Raise `SettingError` for values that do not fit each other."""
        if not self.addresses:
            raise SettingError("listen: give at least one address")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingError("tls-certificate and tls-key belong together: give both or neither")
        self.kafka.check()
        if self.matching not in (None, *WAYS):
            raise SettingError(f"matching: must be {' or '.join(WAYS)}, not {self.matching!r}")
        if self.matching == SPARK and self.database is not None:
            raise SettingError("matching: Spark can match only for a service without a database")

    @property
    def addresses(self) -> list[ListenAddress]:
        """Where to listen. Raises `SettingError` for what is not an address."""
        return [ListenAddress.of(text) for text in self.listen]

    @property
    def grpc_addresses(self) -> list[ListenAddress]:
        """Where to listen for gRPC, if at all."""
        return [] if self.grpc is None else [ListenAddress.of(self.grpc)]

    @property
    def anonymous(self) -> bool:
        """Whether callers without a key may publish and subscribe."""
        if self.keys is None:
            return all(each.is_local for each in (*self.addresses, *self.grpc_addresses))
        return not self.keys
