"""`import tamis` stays light: only an engine that matches pays for the compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = "{'numba', 'pyspark', 'duckdb'}"


@pytest.mark.parametrize(
    "code", ["import tamis", "import tamis; tamis.Schema", "import tamis; tamis.parse"]
)
def test_import_brings_nothing_heavy(code: str) -> None:
    check = f"{code}\nimport sys\nprint(sorted({HEAVY} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_engine_brings_neither_spark_nor_a_database() -> None:
    check = f"import tamis; tamis.Engine\nimport sys\nprint(sorted({HEAVY} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['numba']"


def test_public_names_are_there() -> None:
    import tamis

    for name in tamis.__all__:
        assert getattr(tamis, name) is not None
