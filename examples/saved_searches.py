"""Saved searches: read them from a CSV file, and say whom each new lot interests, and why.

    python saved_searches.py lots.yaml searches.csv lots.jsonl

It needs only the core: pip install tamis
"""

import csv
import json
import sys
from pathlib import Path

from tamis import Engine, Schema
from tamis.errors import ConditionError


def load_searches(schema: Schema, path: Path) -> Engine:
    """An engine with the searches of a file. People may add and remove searches later."""
    engine = Engine(schema)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                engine.subscribe(row["condition"], id=row["id"])
            except ConditionError as why:  # one wrong search must not stop the others
                print(f"search {row['id']}: {why}", file=sys.stderr)
    return engine


def main(schema: str, searches: str, lots: str) -> None:
    engine = load_searches(Schema.load(schema), Path(searches))
    for line in Path(lots).read_text(encoding="utf-8").splitlines():
        lot = json.loads(line)
        for person in engine.match(lot):
            print(f"{lot['title']} → {person}")
            print(engine.explain(person, lot))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
