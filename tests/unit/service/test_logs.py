"""Logs: one line an entry, without secrets, whatever callers send."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from tamis.service.observation.logs import set_up_logs

HOSTILE = 'x\n{"level": "error"}\r\x1b[31m\u2028\ud800'


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("tamis")
    before = root.handlers, root.level, own.level
    yield
    root.handlers, root.level, own.level = before
    structlog.reset_defaults()


def _logged(form: str, level: str = "info") -> tuple[io.StringIO, structlog.stdlib.BoundLogger]:
    out = io.StringIO()
    set_up_logs(form, level, out)
    return out, structlog.stdlib.get_logger("tamis.test")


@pytest.mark.parametrize("form", ["json", "text", "auto"])
def test_hostile_texts_stay_within_their_line(form: str) -> None:
    out, log = _logged(form)
    log.info("something", given=HOSTILE)
    log.info(HOSTILE)
    logging.getLogger("uvicorn.error").warning("from a library: %s", HOSTILE)
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert all("\x1b" not in line for line in lines)
    if form != "text":
        found = [json.loads(line) for line in lines]
        assert found[0]["given"] == HOSTILE
        assert found[2]["logger"] == "uvicorn.error"


@pytest.mark.parametrize("form", ["json", "text"])
def test_secrets_are_hidden(form: str) -> None:
    out, log = _logged(form)
    log.info(
        "with tamis_1f0c2d3e4f5a6b7c and whsec_MfKQ9r8GKYqrTwjU",
        ticket="hf4KEAwz",
        api_key="k",
        why="postgresql://ann:pass@host/base",
    )
    text = out.getvalue()
    for secret in ("1f0c2d", "MfKQ9r", "hf4KEAwz", "ann:pass"):
        assert secret not in text
    assert "host/base" in text


def test_levels_and_libraries() -> None:
    out, log = _logged("json", "warning")
    log.info("no")
    log.warning("yes")
    logging.getLogger("some.library").info("no")
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["event"] == "yes"
