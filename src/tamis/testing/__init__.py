"""The conformance checks of matchers and schedulers, also for your own.

    from tamis.testing import check_matcher, check_scheduler
    check_matcher(MyMatcher)
    check_scheduler(MyScheduler)

`tamis.testing.state_machine` needs hypothesis; everything else needs only tamis.
"""

from tamis.testing.conformance import CHECKS, check_matcher
from tamis.testing.scheduler_checks import check_scheduler

__all__ = ["CHECKS", "check_matcher", "check_scheduler"]
