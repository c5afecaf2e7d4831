"""Vector operations on 512 bits, for kernels.

Numba vectorises long loops. A bitmap line of eight words is too short for that: ANDing ten lines
takes 28 µs over 350,000 clauses as plain words and 6 µs as one vector. So these operations use LLVM
vector types, which compile on every processor: to one 512-bit register if available, else to
several smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS = 8  # per line
_WORD = ir.IntType(64)
_LINE = ir.VectorType(_WORD, WORDS)
_SLOT = ir.IntType(32)
PACKED = 16  # slots packed at a time
_SLOTS = ir.VectorType(_SLOT, PACKED)
_MASK = ir.VectorType(ir.IntType(1), PACKED)


def _index(context: Any, builder: Any, signature: Any, args: Any, at: int) -> Any:
    return context.cast(builder, args[at], signature.args[at], types.intp)


def _place(context: Any, builder: Any, signature: Any, args: Any, at: int, kind: Any) -> Any:
    """The address in the array argument `at`, at the index in the next argument."""
    data = context.make_array(signature.args[at])(context, builder, args[at]).data
    place = builder.gep(data, [_index(context, builder, signature, args, at + 1)])
    return builder.bitcast(place, kind.as_pointer())


def _call(builder: Any, kind: Any, name: str, args: list[Any]) -> Any:
    called = ir.FunctionType(kind, [each.type for each in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, called, name), args)


def _compress(builder: Any, slots: Any, mask: Any) -> Any:
    """The slots whose bit in the mask is set, in order; then anything."""
    args = [slots, builder.bitcast(mask, _MASK), ir.Constant(_SLOTS, ir.Undefined)]
    return _call(builder, _SLOTS, "llvm.experimental.vector.compress.v16i32", args)


def _repeated(builder: Any, value: Any) -> Any:
    """A vector of sixteen equal slots."""
    undefined = ir.Constant(_SLOTS, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.Constant(_SLOT, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_SLOTS, [0] * PACKED))


def _combiner(start: int, name: str) -> Callable[..., Any]:
    @intrinsic
    def combine(
        context: Any, words: Any, base: Any, lines: Any, first: Any, count: Any, out: Any, at: Any
    ) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            call = context, builder, signature, args
            from_, offsets = _place(*call, 0, _WORD), _place(*call, 2, ir.IntType(16))
            total = cgutils.alloca_once(builder, _LINE)
            builder.store(ir.Constant(_LINE, [ir.Constant(_WORD, start)] * WORDS), total)
            with cgutils.for_range(builder, _index(*call, 4)) as loop:
                number = builder.zext(builder.load(builder.gep(offsets, [loop.index])), _WORD)
                offset = builder.mul(number, ir.Constant(_WORD, WORDS))
                place = builder.bitcast(builder.gep(from_, [offset]), _LINE.as_pointer())
                line = builder.load(place, align=8)
                builder.store(getattr(builder, name)(builder.load(total), line), total)
            result = builder.load(total)
            builder.store(result, _place(*call, 5, _LINE), align=8)
            zero = ir.Constant(_LINE, [ir.Constant(_WORD, 0)] * WORDS)
            some = builder.bitcast(builder.icmp_unsigned("!=", result, zero), ir.IntType(WORDS))
            return builder.zext(some, _WORD)

        return types.int64(words, base, lines, first, count, out, at), build

    return combine


and_lines = _combiner(-1, "and_")
"""AND the lines `lines[first:first + count]`, counted from `words[base]`, into `out[at:]`.

The arguments are words, base, lines (uint16), first, count, out, at. Returns a mask: bit w is set
if word w of the result is not 0.
"""
or_lines = _combiner(0, "or_")
"""OR lines. Arguments and result are as in `and_lines`."""


@intrinsic
def pack(context: Any, slots: Any, at: Any, mask: Any, out: Any, to: Any) -> Any:
    """Write the elements of `slots[at:at + 16]` whose bit in `mask` is set to `out[to:]`, in order.

    Always overwrites sixteen places of `out`. Both arrays are int32.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        call = context, builder, signature, args
        taken = builder.load(_place(*call, 0, _SLOTS), align=4)
        packed = _compress(builder, taken, builder.trunc(args[2], ir.IntType(PACKED)))
        builder.store(packed, _place(*call, 3, _SLOTS), align=4)
        return context.get_dummy_value()

    return types.void(slots, at, types.uint64, out, to), build


@intrinsic
def popcount(context: Any, word: Any) -> Any:
    """The number of set bits in a word."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), build


@intrinsic
def trailing(context: Any, word: Any) -> Any:
    """The position of the lowest set bit. The word must not be 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), build


LANES = 32  # 16-bit numbers per line
_LANES = ir.VectorType(ir.IntType(16), LANES)


@intrinsic
def above(context: Any, left: Any, at: Any, right: Any, to: Any) -> Any:
    """Compare `left[at:at + 32]` with `right[to:to + 32]`, both int16, lane by lane.

    Returns 2 if all lanes are greater, 1 if all are greater or equal, otherwise 0.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        call = context, builder, signature, args
        lines = [builder.load(_place(*call, at, _LANES), align=2) for at in (0, 2)]
        full = ir.Constant(ir.IntType(LANES), -1)
        result = ir.Constant(_WORD, 0)
        for sign in (">", ">="):
            bits = builder.bitcast(builder.icmp_signed(sign, *lines), ir.IntType(LANES))
            all_of_them = builder.icmp_unsigned("==", bits, full)
            result = builder.add(result, builder.zext(all_of_them, _WORD))
        return result

    return types.int64(left, at, right, to), build


HAS_COMPRESS = get_host_cpu_features().get("avx512f", False)
"""Whether `positions` compiles to few instructions. Without AVX-512, bit by bit is faster."""


@intrinsic
def positions(context: Any, word: Any, first: Any, out: Any, at: Any) -> Any:
    """Write the positions of the set bits of a word, plus `first`, to `out[at:]` (int32).

    May overwrite up to sixteen further places of `out`. Returns the end of the positions.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        call = context, builder, signature, args
        base = _repeated(builder, builder.trunc(_index(*call, 1), _SLOT))
        start, done = _place(*call, 2, _SLOT), ir.Constant(_WORD, 0)
        for part in range(0, 64, PACKED):
            steps = [ir.Constant(_SLOT, part + i) for i in range(PACKED)]
            places = builder.add(base, ir.Constant(_SLOTS, steps))
            shifted = builder.lshr(args[0], ir.Constant(_WORD, part))
            some = builder.trunc(shifted, ir.IntType(PACKED))
            to = builder.bitcast(builder.gep(start, [done]), _SLOTS.as_pointer())
            builder.store(_compress(builder, places, some), to, align=4)
            done = builder.add(done, builder.zext(builder.ctpop(some), _WORD))
        return builder.add(_index(*call, 3), done)

    return types.int64(types.uint64, first, out, at), build


@intrinsic
def repeat(context: Any, value: Any, out: Any, at: Any) -> Any:
    """Write an int32 sixteen times to `out[at:]`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = _place(context, builder, signature, args, 1, _SLOTS)
        builder.store(_repeated(builder, args[0]), to, align=4)
        return context.get_dummy_value()

    return types.void(types.int32, out, at), build


@intrinsic
def prefetch(context: Any, array: Any, at: Any) -> Any:
    """Prefetch `array[at]` into the cache, without waiting."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args, 0, ir.IntType(8))
        read, near, data_cache = (ir.Constant(_SLOT, each) for each in (0, 3, 1))
        _call(builder, ir.VoidType(), "llvm.prefetch.p0", [place, read, near, data_cache])
        return context.get_dummy_value()

    return types.void(array, at), build
