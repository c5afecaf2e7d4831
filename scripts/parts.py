"""Servers and browsers that some tests need and pip cannot install.

    python scripts/parts.py [NAME ...]

Installs the named parts that are missing, as root on Debian, and reports. Tests that need a missing
part are skipped; with CI=true a missing part is a failure.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SystemPart:
    name: str  # also the pytest marker of its tests
    probe: str  # a path pattern from the root if it has a slash, otherwise a command
    package: str  # Debian package

    def is_there(self) -> bool:
        if "/" in self.probe:
            return any(Path("/").glob(self.probe))
        return shutil.which(self.probe) is not None


PARTS = (
    SystemPart("postgresql", "usr/lib/postgresql/*/bin/initdb", "postgresql"),
    SystemPart("chromium", "chromium", "chromium"),
)


def say(text: str) -> None:
    print(f"parts: {text}", flush=True)


def install(parts: list[SystemPart]) -> None:
    """Try to install. The caller probes again."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        say("can install only as root, with apt-get")
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    commands = [["apt-get", "update", "-qq"]]
    options = ["-y", "-qq", "--no-install-recommends"]
    commands += [["apt-get", "install", *options, part.package] for part in parts]
    for command in commands:
        # Errors of apt-get go to standard error; the rest is noise.
        subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)


def main(names: list[str]) -> int:
    known = {part.name: part for part in PARTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        say(f"unknown parts: {', '.join(unknown)}; known are {', '.join(known)}")
        return 2
    if not names:
        return 0
    required = [known[name] for name in names]
    missing = [part for part in required if not part.is_there()]
    if missing:
        say(f"installing {', '.join(part.name for part in missing)}")
        install(missing)
    missing = [part for part in required if not part.is_there()]
    for part in missing:
        say(f"{part.name} is missing: tests marked '{part.name}' are skipped")
        say(f"  to install it, as root: apt-get install {part.package}")
    if missing and os.environ.get("CI") == "true":
        say("with CI=true a missing part is a failure")
        return 1
    if not missing:
        say(f"all {len(required)} are installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
