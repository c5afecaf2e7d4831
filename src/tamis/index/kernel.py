"""How our compiled loops are compiled: one place, so that all are compiled alike."""

from __future__ import annotations

from numba import njit

kernel = njit(cache=True, nogil=True)
"""A compiled loop: cached on disk between processes, run without holding the GIL."""

inlined = njit(cache=True, nogil=True, inline="always")
"""A small step of a kernel, compiled into the loop that calls it."""
