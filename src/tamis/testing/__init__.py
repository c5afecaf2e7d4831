"""The conformance checks that every matcher and every scheduler passes, for yours too.

    from tamis.testing import check_matcher, check_scheduler
    check_matcher(MyMatcher)
    check_scheduler(MyScheduler)

needs nothing but tamis; `tamis.testing.machine` needs hypothesis.
"""

from tamis.testing.conformance import CHECKS, check_matcher
from tamis.testing.scheduler_checks import check_scheduler

__all__ = ["CHECKS", "check_matcher", "check_scheduler"]
