"""The part of numba.extending that tamis uses."""

from collections.abc import Callable
from typing import Any

# Compiled code calls what the decorator gives without the typing context, so its own signature
# is not that of the function below it.
def intrinsic(function: Callable[..., Any], /) -> Callable[..., Any]: ...
