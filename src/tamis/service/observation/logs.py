"""Logs: JSON for programs, lines for people on a terminal. Secrets never get there."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

_HIDDEN = "(hidden)"
_SECRET_NAMES = re.compile(
    r"ticket|secret|password|authorization|cookie|nonce|(^|_)key$", re.IGNORECASE
)
_SECRETS = re.compile(r"\b(tamis_|whsec_)[\w+/=-]{8,}|(?<=://)[^/\s@]+(?=@)")
_LONGEST = 4000  # characters of a value


def set_up_logs(form: str, level: str, out: TextIO | None = None) -> None:
    """Send the logs of the whole process to a stream: `form` is "json", "text" or "auto"."""
    stream = out or sys.stderr
    json_wanted = form == "json" or (form == "auto" and not stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    last = structlog.processors.JSONRenderer(ensure_ascii=True) if json_wanted else as_line
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)  # of libraries
    logging.getLogger("tamis").setLevel(level.upper())
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def hide_secrets(
    logger: Any, method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Hide what is named like a secret or looks like one, and shorten what is too long."""
    for name, value in entry.items():
        if name.startswith("_"):
            continue
        if _SECRET_NAMES.search(name):
            entry[name] = _HIDDEN
        elif isinstance(value, str):
            entry[name] = _SECRETS.sub(_HIDDEN, value[:_LONGEST])
        elif value is not None and not isinstance(value, bool | int | float):
            entry[name] = _SECRETS.sub(_HIDDEN, str(value)[:_LONGEST])
    return entry


def as_line(logger: Any, method: str, entry: MutableMapping[str, Any]) -> str:
    """An entry for people. What is not printable is escaped, so an entry is one line."""
    moment = entry.pop("timestamp")[:19].replace("T", " ")
    level, event = entry.pop("level"), _printable(str(entry.pop("event")))
    entry.pop("logger", None)
    facts = "".join(f"  {name}={_printable(str(value))}" for name, value in entry.items())
    return f"{moment} {level:7} {event}{facts}"


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)
