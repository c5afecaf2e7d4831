"""The look of algorithms: one colour and one marker for each, the same in every plot.

The colours are those of Okabe and Ito, without yellow, which is too light on white, and with
brown and two greys. Markers differ within a paper, so that its plots can be read without colours.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple
from zlib import crc32

from tamis.lab.experiments.experiment import Mode

_BLACK, _GREY, _LIGHT = "#000000", "#6b6b6b", "#a8a8a8"
_ORANGE, _SKY, _GREEN = "#e69f00", "#56b4e9", "#009e73"
_BLUE, _RED, _PINK = "#0072b2", "#d55e00", "#cc79a7"
_BROWN = "#7a5c00"
_COLOURS = (_BLUE, _RED, _GREEN, _ORANGE, _SKY, _PINK, _GREY, _LIGHT)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")


class AlgorithmLook(NamedTuple):
    """The colour and the marker of an algorithm."""

    colour: str
    marker: str


class ModeLook(NamedTuple):
    """The line of a mode, and its name in a legend."""

    line: str
    width: float
    title: str


MODES: dict[Mode, ModeLook] = {
    Mode.PAPER: ModeLook("-", 1.4, "as in the paper"),
    Mode.TUNED: ModeLook("--", 1.4, "tuned"),
    Mode.OURS: ModeLook("-", 2.8, "not in the paper"),
}
LOOKS: dict[str, AlgorithmLook] = {
    name: AlgorithmLook(colour, marker)
    for name, colour, marker in (
        ("tamis", _BLACK, "*"),
        ("tamis-gpu", _BLACK, "D"),
        ("scan", _LIGHT, "h"),
        ("naive", _GREY, "X"),
        # DEXIN
        ("dexin", _BLUE, "o"),
        ("rein", _ORANGE, "s"),
        ("tama", _GREEN, "^"),
        ("h-tree", _RED, "D"),
        ("be-tree", _PINK, "v"),
        ("opindex", _SKY, "P"),
        ("dexin, linked lists", _BROWN, "h"),
        ("dexin, LMRFF", _BLUE, "<"),
        ("dexin, optimal", _RED, "v"),
        ("dexin, inclusive only", _GREEN, "s"),
        ("dexin, exclusive only", _ORANGE, "^"),
        # Le Subscribe
        ("fair-predicate", _RED, "s"),
        ("equality-preferred", _GREEN, "h"),
        ("quarantine", _BLUE, "D"),
        ("neon", _ORANGE, "v"),
        ("hanson", _PINK, "P"),
        ("hanson-first", _SKY, "v"),
        ("gough", _SKY, "<"),
        ("gough-tree", _ORANGE, ">"),
        ("aguilera", _BROWN, "o"),
        # TOPSS
        ("counting-byte", _GREEN, "v"),
        ("counting-bit", _ORANGE, "D"),
        ("counting-list", _BLUE, "s"),
        ("sql-sequential", _RED, "<"),
        ("sql-grouping", _PINK, ">"),
        ("counting-list-deletion", _SKY, "o"),
        ("counting-list-linear", _SKY, "^"),
        ("sql-sequential-duckdb", _RED, "P"),
        ("sql-sequential-postgresql", _GREY, "h"),
        ("sql-grouping-duckdb", _PINK, "^"),
        ("sql-grouping-postgresql", _BROWN, ">"),
        ("table, W0", _SKY, "s"),
        ("table, W1", _GREEN, "o"),
        ("table, W2", _ORANGE, "P"),
        ("table, W3", _RED, "v"),
        ("list, W0", _PINK, "D"),
        ("list, W1", _GREY, "<"),
        ("list, W2", _BROWN, "^"),
        ("list, W3", _BLUE, "h"),
        # Gryphon
        ("aguilera, collapsed", _ORANGE, "s"),
        ("aguilera, successors", _GREEN, "^"),
        ("aguilera, aggressive", _RED, "D"),
        ("aguilera, 2 index attributes", _BLUE, "v"),
        ("aguilera, no index attribute", _GREEN, "^"),
        ("aguilera, general", _PINK, "P"),
        ("aguilera, general with successors", _SKY, "<"),
        ("aguilera, general with 2 index attributes", _GREY, ">"),
        ("bound of the theorem", _RED, "D"),
        # schedulers
        ("naive, as a set", _LIGHT, "s"),
        ("sub-order, costs hidden", _SKY, "<"),
        ("adaptive, costs hidden", _GREEN, "D"),
        ("sequential", _ORANGE, "^"),
        ("sub-order", _BLUE, "v"),
        ("adaptive", _BLACK, "P"),
    )
}


def looks(names: Iterable[str]) -> dict[str, AlgorithmLook]:
    """The looks of algorithms that appear in one picture.

    A variant of a known algorithm, such as `dexin-list`, has its colour and another marker. Any
    other name has a look that follows from the name, as long as no other has it already.
    """
    found: dict[str, AlgorithmLook] = {}
    for name in dict.fromkeys(names):
        if name in LOOKS:
            found[name] = LOOKS[name]
    for name in dict.fromkeys(names):
        if name not in found:
            base = max(
                (known for known in LOOKS if _is_variant(name, known)), key=len, default=None
            )
            colours = _COLOURS if base is None else (LOOKS[base].colour,)
            found[name] = _free_look(name, colours, set(found.values()))
    return found


def _is_variant(name: str, known: str) -> bool:
    return name.startswith(known) and not name[len(known)].isalnum()


def _free_look(name: str, colours: Iterable[str], taken: set[AlgorithmLook]) -> AlgorithmLook:
    """The first free look in an order that follows from the name; other colours come first."""
    every = [AlgorithmLook(*each) for each in product(colours, _MARKERS)]
    start = crc32(name.encode()) % len(every)
    order = every[start:] + every[:start]
    used = {look.colour for look in taken}, {look.marker for look in taken}
    free = [look for look in order if look not in taken] or order
    return min(free, key=lambda look: (look.colour in used[0]) + (look.marker in used[1]))
