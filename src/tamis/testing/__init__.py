"""The conformance checks that every matcher passes, also for your own matchers.

    from tamis.testing import check_matcher
    check_matcher(MyMatcher)

`tamis.testing.state_machine` needs hypothesis; everything else needs only tamis.
"""

from tamis.testing.conformance import CHECKS, check_matcher

__all__ = ["CHECKS", "check_matcher"]
