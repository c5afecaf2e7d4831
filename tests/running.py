"""Running things beside the test: scripts in a process of their own, and threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_script(
    script: str, *arguments: object, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the text of a script in a new interpreter, and wait for its end."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=check,
    )


def in_threads(work: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Do the work once for each tuple of arguments, all at once, and wait for all."""
    threads = [Thread(target=work, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_machine(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    """Run a state machine, however slowly it draws its steps."""
    checks = list(HealthCheck)
    wanted = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=checks
    )
    run_state_machine_as_test(machine, settings=wanted)
