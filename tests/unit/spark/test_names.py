"""The public names of `tamis.spark`, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tamis.spark


def test_importing_it_brings_nothing_heavy() -> None:
    check = (
        "import tamis.spark, sys\n"
        "print(sorted({'numba', 'pandas', 'pyarrow', 'pyspark'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_public_names_are_functions() -> None:
    for name in tamis.spark.__all__:
        assert callable(getattr(tamis.spark, name))
        assert name in dir(tamis.spark)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'mach'"):
        _ = tamis.spark.mach
