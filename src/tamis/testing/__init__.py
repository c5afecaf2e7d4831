"""The conformance checks that every matcher passes, for yours too.

    from tamis.testing import check_matcher
    check_matcher(MyMatcher)

needs nothing but tamis; `tamis.testing.machine` needs hypothesis.
"""

from tamis.testing.conformance import CHECKS, check_matcher

__all__ = ["CHECKS", "check_matcher"]
