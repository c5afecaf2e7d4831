"""Ctrl-C during a kernel ends it with a KeyboardInterrupt, once the kernel has returned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import signal
import numpy as np
from tamis.index.kernel import kernel

@kernel
def _long(many):
    total = 0.0
    for i in range(many):
        total = (total + i) % 7.1
    return np.full(3, total), np.full(2, 1)

_long(1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(10):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        _long(2_000_000)
        raise SystemExit("it was not interrupted")
    except KeyboardInterrupt:
        pass
"""


def test_an_interrupt_during_a_kernel_that_returns_arrays(tmp_path: Path) -> None:
    file = tmp_path / "script.py"  # kernels are cached by their source
    file.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, file], timeout=300, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
