"""Checks of the code layout that no linter has.

    python scripts/check_layout.py

- A class name occurs once in src. A leading underscore does not make a name different.
- A Python file has at most 420 lines.
- A folder of src/tamis has at most 20 Python files.
- The table of packages in docs/architecture.md lists the packages of src/tamis, two levels deep.
- The layers in docs/architecture.md are those of the import rules in pyproject.toml.

Prints each violation, and exits with 1 if there is any.
"""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 420
MOST_FILES = 20
_TABLE_ROW = re.compile(r"^\| `(tamis/[\w/]+)` \|", re.MULTILINE)
_LAYERS = re.compile(r"^```\n((?:[a-z]+(?: +[a-z]+)*\n)+)```$", re.MULTILINE)


def repeated_classes(root: Path) -> Iterator[str]:
    """Class names that occur twice."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.relative_to(root)}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"class {name} occurs {len(found)} times, rename all but one: {', '.join(found)}"


def long_files(root: Path) -> Iterator[str]:
    """Python files with too many lines."""
    for folder in ("src", "tests", "scripts"):
        for path in sorted((root / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > MOST_LINES:
                yield f"{path.relative_to(root)}: {lines} lines, at most {MOST_LINES}: split it"


def full_folders(root: Path) -> Iterator[str]:
    """Folders of the package with too many Python files."""
    package = root / "src" / "tamis"
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        files = len(list(folder.glob("*.py")))
        if files > MOST_FILES:
            yield (
                f"{folder.relative_to(root)}: {files} Python files, at most {MOST_FILES}: "
                "make sub-folders that say what its parts are"
            )


def wrong_table(root: Path) -> Iterator[str]:
    """Differences between the packages and the table in docs/architecture.md."""
    source = root / "src"
    package = source / "tamis"
    there = {
        path.parent.relative_to(source).as_posix()
        for pattern in ("*/__init__.py", "*/*/__init__.py")
        for path in package.glob(pattern)
    }
    page = root / "docs" / "architecture.md"
    listed = _TABLE_ROW.findall(page.read_text(encoding="utf-8"))
    for name in sorted(there - set(listed)):
        yield f"docs/architecture.md: the table of packages lacks `{name}`"
    for name in sorted(set(listed) - there):
        yield f"docs/architecture.md: the table of packages has `{name}`, which does not exist"
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"docs/architecture.md: the table of packages has `{name}` twice"


def wrong_layers(root: Path) -> Iterator[str]:
    """A difference between the layers in docs/architecture.md and the import rules."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (rules,) = [
        each["layers"]
        for each in contracts["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers"
    ]
    wanted = [set(re.findall("[a-z]+", layer)) for layer in rules]
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = [[set(line.split()) for line in block.splitlines()] for block in _LAYERS.findall(page)]
    if wanted not in shown:
        yield "docs/architecture.md: the layers are not those of the contract in pyproject.toml"


def violations(root: Path) -> list[str]:
    """All violations."""
    checks = (repeated_classes, long_files, full_folders, wrong_table, wrong_layers)
    return [found for check in checks for found in check(root)]


def main() -> int:
    found = violations(ROOT)
    for each in found:
        print(f"layout: {each}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
