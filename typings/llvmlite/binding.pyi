"""The part of llvmlite.binding that tamis uses."""

from collections.abc import Mapping

def get_host_cpu_features() -> Mapping[str, bool]: ...
