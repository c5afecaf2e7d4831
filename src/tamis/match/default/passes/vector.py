"""Vector operations on 512 bits, for kernels.

Numba vectorises long loops. A bitmap line of eight words is too short for that: ANDing ten lines
takes 28 µs over 350,000 clauses as plain words and 6 µs as one vector. So these operations use LLVM
vector types, which compile on every processor: to one 512-bit register if available, else to
several smaller ones.
"""

from __future__ import annotations

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


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _index(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.cast(builder, value, kind, types.intp)


def _combine(context: Any, builder: Any, signature: Any, args: Any, start: int, name: str) -> Any:
    """out[at:at + 8] = the AND or OR of `count` lines. Returns a mask of the non-zero words."""
    kinds = signature.args
    words = builder.gep(
        _data(context, builder, kinds[0], args[0]), [_index(context, builder, kinds[1], args[1])]
    )
    offsets = builder.gep(
        _data(context, builder, kinds[2], args[2]), [_index(context, builder, kinds[3], args[3])]
    )
    out = builder.gep(
        _data(context, builder, kinds[5], args[5]), [_index(context, builder, kinds[6], args[6])]
    )
    total = cgutils.alloca_once(builder, _LINE)
    builder.store(ir.Constant(_LINE, [ir.Constant(_WORD, start)] * WORDS), total)
    with cgutils.for_range(builder, _index(context, builder, kinds[4], args[4])) as loop:
        number = builder.zext(builder.load(builder.gep(offsets, [loop.index])), _WORD)
        offset = builder.mul(number, ir.Constant(_WORD, WORDS))
        place = builder.bitcast(builder.gep(words, [offset]), _LINE.as_pointer())
        line = builder.load(place, align=8)
        builder.store(getattr(builder, name)(builder.load(total), line), total)
    result = builder.load(total)
    builder.store(result, builder.bitcast(out, _LINE.as_pointer()), align=8)
    zero = ir.Constant(_LINE, [ir.Constant(_WORD, 0)] * WORDS)
    some = builder.bitcast(builder.icmp_unsigned("!=", result, zero), ir.IntType(WORDS))
    return builder.zext(some, _WORD)


@intrinsic
def and_lines(
    context: Any, words: Any, base: Any, lines: Any, first: Any, count: Any, out: Any, at: Any
) -> Any:
    """AND the lines `lines[first:first + count]`, counted from `words[base]`, into `out[at:]`.

    `lines` is uint16. Returns a mask: bit w is set if word w of the result is not 0.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _combine(context, builder, signature, args, -1, "and_")

    return types.int64(words, base, lines, first, count, out, at), build


@intrinsic
def or_lines(
    context: Any, words: Any, base: Any, lines: Any, first: Any, count: Any, out: Any, at: Any
) -> Any:
    """OR lines. Arguments and result are as in `and_lines`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _combine(context, builder, signature, args, 0, "or_")

    return types.int64(words, base, lines, first, count, out, at), build


@intrinsic
def pack(context: Any, slots: Any, at: Any, mask: Any, out: Any, to: Any) -> Any:
    """Write the elements of `slots[at:at + 16]` whose bit in `mask` is set to `out[to:]`, in order.

    Always overwrites sixteen places of `out`. Both arrays are int32.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        source = builder.gep(
            _data(context, builder, kinds[0], args[0]),
            [_index(context, builder, kinds[1], args[1])],
        )
        target = builder.gep(
            _data(context, builder, kinds[3], args[3]),
            [_index(context, builder, kinds[4], args[4])],
        )
        taken = builder.load(builder.bitcast(source, _SLOTS.as_pointer()), align=4)
        chosen = builder.bitcast(builder.trunc(args[2], ir.IntType(PACKED)), _MASK)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_SLOTS, [_SLOTS, _MASK, _SLOTS]),
            "llvm.experimental.vector.compress.v16i32",
        )
        packed = builder.call(compress, [taken, chosen, ir.Constant(_SLOTS, ir.Undefined)])
        builder.store(packed, builder.bitcast(target, _SLOTS.as_pointer()), align=4)
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
        kinds = signature.args
        lines = []
        for i in (0, 2):
            start = builder.gep(
                _data(context, builder, kinds[i], args[i]),
                [_index(context, builder, kinds[i + 1], args[i + 1])],
            )
            lines.append(builder.load(builder.bitcast(start, _LANES.as_pointer()), align=2))
        full = ir.Constant(ir.IntType(LANES), -1)
        result = ir.Constant(_WORD, 0)
        for sign in (">", ">="):
            bits = builder.bitcast(builder.icmp_signed(sign, *lines), ir.IntType(LANES))
            all_of_them = builder.icmp_unsigned("==", bits, full)
            result = builder.add(result, builder.zext(all_of_them, _WORD))
        return result

    return types.int64(left, at, right, to), build


TELLS = "avx512f" in get_host_cpu_features() and get_host_cpu_features()["avx512f"]
"""Whether `tell` compiles to one instruction. Without AVX-512, extracting bit by bit is faster."""


@intrinsic
def tell(context: Any, word: Any, first: Any, out: Any, at: Any) -> Any:
    """Write the positions of the set bits of a word, plus `first`, to `out[at:]` (int32).

    May overwrite up to sixteen further places of `out`. Returns the end of the positions.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        data = _data(context, builder, kinds[2], args[2])
        at = _index(context, builder, kinds[3], args[3])
        zero = ir.Constant(ir.IntType(32), 0)
        undefined = ir.Constant(_SLOTS, ir.Undefined)
        base = builder.insert_element(
            undefined, builder.trunc(_index(context, builder, kinds[1], args[1]), _SLOT), zero
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), PACKED), [0] * PACKED)
        base = builder.shuffle_vector(base, undefined, zeros)
        compress = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_SLOTS, [_SLOTS, _MASK, _SLOTS]),
            "llvm.experimental.vector.compress.v16i32",
        )
        for part in range(0, 64, PACKED):
            steps = [ir.Constant(_SLOT, part + i) for i in range(PACKED)]
            places = builder.add(base, ir.Constant(_SLOTS, steps))
            some = builder.trunc(
                builder.lshr(args[0], ir.Constant(_WORD, part)), ir.IntType(PACKED)
            )
            told = builder.call(compress, [places, builder.bitcast(some, _MASK), undefined])
            to = builder.bitcast(builder.gep(data, [at]), _SLOTS.as_pointer())
            builder.store(told, to, align=4)
            at = builder.add(at, builder.zext(builder.ctpop(some), _WORD))
        return at

    return types.int64(types.uint64, first, out, at), build


@intrinsic
def repeat(context: Any, value: Any, out: Any, at: Any) -> Any:
    """Write an int32 sixteen times to `out[at:]`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        data = _data(context, builder, kinds[1], args[1])
        at = _index(context, builder, kinds[2], args[2])
        one = builder.insert_element(
            ir.Constant(_SLOTS, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), PACKED), [0] * PACKED)
        all_of_them = builder.shuffle_vector(one, ir.Constant(_SLOTS, ir.Undefined), zeros)
        to = builder.bitcast(builder.gep(data, [at]), _SLOTS.as_pointer())
        builder.store(all_of_them, to, align=4)
        return context.get_dummy_value()

    return types.void(types.int32, out, at), build


@intrinsic
def prefetch(context: Any, array: Any, at: Any) -> Any:
    """Prefetch `array[at]` into the cache, without waiting."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        data = _data(context, builder, kinds[0], args[0])
        place = builder.gep(data, [_index(context, builder, kinds[1], args[1])])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0",
        )
        read, near, data_cache = (ir.Constant(number, each) for each in (0, 3, 1))
        builder.call(fetch, [builder.bitcast(place, byte), read, near, data_cache])
        return context.get_dummy_value()

    return types.void(array, at), build
