"""The part of numba.core that tamis uses."""

from numba.core import cgutils as cgutils
