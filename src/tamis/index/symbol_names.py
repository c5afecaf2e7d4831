"""Names of compiled functions that no other process gives.

Numba names a compiled function by its module, its types, and a number that it counts from 1 in each
process. Compiled code brings the functions that it calls along, and where two pieces of code bring
functions of one name, the linker keeps the first. In one process the numbers tell them apart. But
code on disk comes from several processes, and two functions that differ only in a closure may have
one name: those with which Numba sorts values and positions, for example. A kernel that sorts
positions then called the one for values, and its answers were wrong.

So each process counts from a random number on.
"""

from __future__ import annotations

import os
import secrets
from itertools import count

from numba.core.bytecode import FunctionIdentity

# Code that was compiled under other names is not loaded.
SCHEME = "random numbers"


def count_from_a_random_number() -> None:
    """Number the functions that are compiled from now on."""
    # Of 2^24 processes that compile 2^16 functions each, hardly two meet.
    FunctionIdentity._unique_ids = count(1 << 96 | secrets.randbits(96))


count_from_a_random_number()
os.register_at_fork(after_in_child=count_from_a_random_number)
