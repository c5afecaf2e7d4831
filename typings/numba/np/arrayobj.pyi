"""The part of numba.np.arrayobj that tamis uses."""

from typing import Any

def populate_array(
    array: Any, data: Any, shape: Any, strides: Any, itemsize: Any, meminfo: Any, parent: Any = ...
) -> Any: ...
