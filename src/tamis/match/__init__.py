"""The kitchen: matchers, each an algorithm over terms. Integers only."""

from tamis.match.base import Matcher, Matches, Tally
from tamis.match.registry import create, matchers

__all__ = ["Matcher", "Matches", "Tally", "create", "matchers"]
