"""The public names of `tamis.spark`, and what importing it costs."""

from __future__ import annotations

import pytest

import tamis.spark
from tests.running import run_script


def test_importing_it_brings_nothing_heavy() -> None:
    check = (
        "import tamis.spark, sys\n"
        "print(sorted({'numba', 'pandas', 'pyarrow', 'pyspark'} & set(sys.modules)))"
    )
    assert run_script(check).stdout.strip() == "[]"


def test_public_names_are_functions_and_others_are_refused() -> None:
    for name in tamis.spark.__all__:
        assert callable(getattr(tamis.spark, name))
        assert name in dir(tamis.spark)
    with pytest.raises(AttributeError, match="no attribute 'mach'"):
        _ = tamis.spark.mach
