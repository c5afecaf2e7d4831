"""Load SQL statements from .sql files; each has a name and a sentence on its purpose.

    -- name [database]
    -- The sentence.
    SELECT ...;

A statement with a database in brackets is only for that database. The first word of the name says
when it runs: `create` statements run at the start, `insert` and `delete` when subscriptions change.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_HEAD = re.compile(r"^-- (\w+)(?: \[(\w+)\])?$", re.MULTILINE)


@cache
def statements(file: str, database: str) -> dict[str, str]:
    """The statements of one file for one database, by name, in file order."""
    text = (files("tamis.match.topss.sql") / f"{file}.sql").read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found = {}
    for head, end in zip(heads, ends, strict=True):
        if head[2] in (None, database):
            lines = text[head.end() : end].strip().splitlines()
            body = "\n".join(line for line in lines if not line.startswith("--"))
            found[head[1]] = body.strip().removesuffix(";")
    return found


def beginning(all: dict[str, str], word: str) -> list[str]:
    """The statements whose names begin with a word."""
    return [text for name, text in all.items() if name.split("_")[0] == word]
