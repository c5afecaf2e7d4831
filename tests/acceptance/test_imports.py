"""`import tamis` stays light: only an engine that matches pays for the compiler."""

from __future__ import annotations

import pytest

from tests.running import run_script

HEAVY = "{'numba', 'pyspark', 'duckdb'}"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import tamis", "[]"),
        ("import tamis; tamis.Schema", "[]"),
        ("import tamis; tamis.parse", "[]"),
        ("import tamis; tamis.Engine", "['numba']"),
    ],
)
def test_import_brings_nothing_heavy(code: str, heavy: str) -> None:
    check = f"{code}\nimport sys\nprint(sorted({HEAVY} & set(sys.modules)))"
    assert run_script(check).stdout.strip() == heavy


def test_public_names_are_there() -> None:
    import tamis

    for name in tamis.__all__:
        assert getattr(tamis, name) is not None
