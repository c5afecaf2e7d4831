"""Operators of the tests of the broker: a quick one, and three that misbehave in ways of their own.

A service is told of this module by its name.
"""

from __future__ import annotations

import os
import time

from tamis import operator


@operator(name="titleWords", reads=("title",), gives={"words": "number"}, run="here")
def title_words(title: str) -> int:
    """The number of words in a title."""
    return len(title.split())


@operator(name="hangsOn", reads=("title",), arguments={"word": "text"}, timeout=0.3, pure=False)
def hangs_on(title: str, word: str) -> bool:
    """Hangs if the title has the word."""
    if word in title:
        time.sleep(1.0)
    return True


@operator(name="fromElsewhere", reads=("title",), run="process", timeout=5.0, pure=False)
def from_elsewhere(title: str) -> bool:
    """Ends its process if the title asks for it."""
    if title == "crash":
        os._exit(3)
    return True


@operator(reads=("price",), run="here", pure=False, cost=20)
def slowly(price: float) -> bool:
    """Takes a while."""
    time.sleep(0.02)
    return price >= 0


@operator(name="shapeOf", reads=("thing",), gives={"kind": "text"}, run="here")
def shape_of(thing: object) -> str:
    """The type of an opaque value."""
    return type(thing).__name__
