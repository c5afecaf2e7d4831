"""The part of numba that tamis uses.

numba ships types of its own, but with them mypy takes a bare ``@njit`` for the call form and
loses the function's signature. Here a compiled function is its plain self plus a few attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from numba import config as config
from numba import typed as typed
from numba import types as types
from numba.types import Signature, Type
from numba.types import boolean as boolean
from numba.types import float32 as float32
from numba.types import float64 as float64
from numba.types import int8 as int8
from numba.types import int16 as int16
from numba.types import int32 as int32
from numba.types import int64 as int64
from numba.types import intp as intp
from numba.types import uint8 as uint8
from numba.types import uint16 as uint16
from numba.types import uint32 as uint32
from numba.types import uint64 as uint64
from numba.types import void as void

__version__: str

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)

_Signature = str | Signature | tuple[Type, ...]
_Signatures = _Signature | Sequence[_Signature]
_ErrorModel = Literal["python", "numpy"]
_Inline = Literal["never", "always"]

class Dispatcher(Generic[_P, _R_co]):
    """A compiled function."""

    __name__: str
    __qualname__: str
    __doc__: str | None
    __module__: str
    signatures: list[tuple[Type, ...]]
    _cache: Any
    targetctx: Any
    nopython_signatures: list[Signature]
    @property
    def py_func(self) -> Callable[_P, _R_co]: ...
    @property
    def __wrapped__(self) -> Callable[_P, _R_co]: ...
    @property
    def stats(self) -> Any: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    def compile(self, sig: _Signature) -> Any: ...

class _Wrapper(Protocol):
    def __call__(self, function: Callable[_P, _R_co], /) -> Dispatcher[_P, _R_co]: ...

# The bare form comes first: a function is never a signature, so the two cannot be confused.
@overload
def njit(function: Callable[_P, _R_co], /) -> Dispatcher[_P, _R_co]: ...
@overload
def njit(
    signature: _Signatures | None = ...,
    /,
    *,
    locals: Mapping[str, Type] = ...,
    cache: bool = ...,
    boundscheck: bool | None = ...,
    nogil: bool = ...,
    parallel: bool | Mapping[str, bool] = ...,
    fastmath: bool | set[str] = ...,
    error_model: _ErrorModel = ...,
    inline: _Inline = ...,
    forceinline: bool = ...,
    looplift: bool = ...,
    debug: bool = ...,
) -> _Wrapper: ...
@overload
def jit(function: Callable[_P, _R_co], /) -> Dispatcher[_P, _R_co]: ...
@overload
def jit(
    signature: _Signatures | None = ...,
    /,
    *,
    locals: Mapping[str, Type] = ...,
    cache: bool = ...,
    boundscheck: bool | None = ...,
    nopython: bool = ...,
    forceobj: bool = ...,
    nogil: bool = ...,
    parallel: bool | Mapping[str, bool] = ...,
    fastmath: bool | set[str] = ...,
    error_model: _ErrorModel = ...,
    inline: _Inline = ...,
    forceinline: bool = ...,
    looplift: bool = ...,
    debug: bool = ...,
) -> _Wrapper: ...

# A function in compiled code, a range to the reader and to mypy.
prange = range

# Given a pointer, which only compiled code has, it gives an array of any type.
def carray(pointer: Any, shape: Any, dtype: Any = ...) -> Any: ...
