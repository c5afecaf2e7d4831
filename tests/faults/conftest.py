"""What fault tests share: a starter of servers, a schema, and a library that makes writes fail."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_servers import WarmServers, warm_servers

SCHEMA = {"attributes": {"price": "decimal", "title": "text"}}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmServers]:
    with warm_servers(tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """The path of a schema."""
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes one write or sync fail."""
    library = tmp_path_factory.mktemp("failing") / "failing.so"
    source = Path(__file__).with_name("failing.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library
