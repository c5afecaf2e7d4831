"""The auction house of the demonstration: its schema, its goods and its vocabulary.

After the running example of Le Subscribe (section 2.1), which has antiques and furniture sold on
auction sites; an antique table is of both event types at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Tree = dict[str, Any]

GOODS: Tree = {
    "furniture": {
        "table": {"dining_table": {}, "desk": {}, "coffee_table": {}},
        "chair": {"armchair": {}, "stool": {}, "bench": {}},
        "cupboard": {"wardrobe": {}, "sideboard": {}},
        "bed": {},
    },
    "toy": {
        "train": {"steam_engine": {}, "wagon": {}},
        "doll": {},
        "puzzle": {},
        "teddy_bear": {},
        "board_game": {},
    },
    "jewellery": {
        "watch": {"pocket_watch": {}, "wristwatch": {}},
        "ring": {},
        "necklace": {},
        "brooch": {},
    },
    "art": {
        "painting": {"portrait": {}, "landscape": {}, "still_life": {}},
        "sculpture": {},
        "print": {},
    },
    "instrument": {"string": {"violin": {}, "cello": {}, "guitar": {}}, "piano": {}, "flute": {}},
    "book": {"atlas": {}, "novel": {}, "cookbook": {}},
}

TYPES = ("furniture", "toys", "jewellery", "art", "instruments", "books", "antiques")
"""Event types. All but the last have categories: the tree of GOODS at the same position."""
ANTIQUES = len(TYPES) - 1

CENTURIES = ("XVI", "XVII", "XVIII", "XIX", "XX", "XXI")
STATES = ("damaged", "worn", "good", "restored", "mint")
STATE_ORDER = (
    ("damaged", "worn"),
    ("worn", "good"),
    ("good", "mint"),
    # A restored piece is better than a damaged one, but neither better nor worse than a good one.
    ("damaged", "restored"),
    ("restored", "mint"),
)

TAGS = (
    "vintage", "handmade", "oak", "rare", "silver", "walnut", "signed", "red", "french", "gold",
    "large", "blue", "restored", "english", "boxed", "replica", "mahogany", "green", "japanese",
    "miniature", "limited", "ebony", "inlaid", "italian",
)  # fmt: skip
"""The most popular first."""

ADJECTIVES = ("Fine", "Grand", "Charming", "Old", "Rare", "Elegant", "Curious", "Sturdy", "Royal")
ARTISTS = ("Hokusai", "Vermeer", "Morisot", "Gentileschi", "Chardin", "Cassatt", "Klee", "Kollwitz")


def branches() -> list[Tree]:
    """The subtree of goods of each event type that has categories."""
    return [{root: below} for root, below in GOODS.items()]


def nodes(tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """Every node of a tree with its children, parents first."""
    for name, below in tree.items():
        yield name, list(below)
        yield from nodes(below)


def schema() -> dict[str, Any]:
    """The schema document."""
    common = {
        "title": "mandatory",
        "price": "mandatory",
        "quantity": "mandatory",
        "closes": "mandatory",
        "tags": "optional multiple",
        "shipping": "optional",
    }
    sorted_goods = common | {"category": "mandatory"}
    return {
        "domains": {
            "goods": {"kind": "hierarchy", "tree": {"goods": GOODS}},
            "century": {
                "kind": "enumerated",
                "values": list(CENTURIES),
                "order": [list(pair) for pair in pairwise(CENTURIES)],
            },
            "grade": {
                "kind": "enumerated",
                "values": list(STATES),
                "order": [list(pair) for pair in STATE_ORDER],
            },
        },
        "attributes": {
            "title": "text",
            "price": "decimal",
            "quantity": {"kind": "integer", "low": 1, "high": 1000},
            "closes": "timestamp",
            "tags": "text",
            "shipping": "boolean",
            "category": "goods",
            "period": "century",
            "state": "grade",
            "age": {"kind": "integer", "low": 0, "high": 99},
            "artist": "text",
        },
        "event_types": {
            "furniture": sorted_goods | {"state": "optional"},
            "toys": sorted_goods | {"age": "optional"},
            "jewellery": dict(sorted_goods),
            "art": sorted_goods | {"artist": "optional", "period": "optional"},
            "instruments": sorted_goods | {"state": "optional"},
            "books": sorted_goods | {"period": "optional"},
            "antiques": common | {"period": "mandatory", "state": "optional"},
        },
    }
