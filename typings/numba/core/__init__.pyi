"""The part of numba.core that tamis uses."""

from numba.core import cgutils as cgutils
from numba.core import compiler as compiler
from numba.core import serialize as serialize
