from typing import Any

NUMBA_NUM_THREADS: int
NUMBA_DEFAULT_NUM_THREADS: int
THREADING_LAYER: str
CACHE_DIR: str
DISABLE_JIT: int
OPT: Any
BOUNDSCHECK: int | None

def reload_config() -> None: ...
