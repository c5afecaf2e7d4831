"""Numba's type objects: enough to write a signature."""

from typing import Any

class Type:
    name: str
    def __getitem__(self, item: slice | tuple[slice, ...]) -> Array: ...
    def __call__(self, *args: Type) -> Signature: ...

class Signature:
    args: tuple[Type, ...]
    return_type: Type

class Number(Type): ...

class Integer(Number):
    bitwidth: int
    signed: bool

class Float(Number):
    bitwidth: int

class Boolean(Type): ...

class Array(Type):
    dtype: Type
    ndim: int
    layout: str
    def __init__(
        self, dtype: Type, ndim: int, layout: str, readonly: bool = ..., aligned: bool = ...
    ) -> None: ...

class BaseTuple(Type):
    types: tuple[Type, ...]
    @classmethod
    def from_types(cls, tys: tuple[Type, ...], pyclass: type | None = ...) -> BaseTuple: ...

class Tuple(Type):
    def __init__(self, types: tuple[Type, ...]) -> None: ...

class ListType(Type):
    def __init__(self, itemty: Type) -> None: ...

class FunctionType(Type):
    def __init__(self, signature: Signature) -> None: ...

boolean: Boolean
bool_: Boolean
int8: Integer
int16: Integer
int32: Integer
int64: Integer
intp: Integer
uint8: Integer
uint16: Integer
uint32: Integer
uint64: Integer
uintp: Integer
float32: Float
float64: Float
unicode_type: Type
void: Type
none: Type
pyobject: Type

# Anything rarer is looked up without a type.
def __getattr__(name: str) -> Any: ...
