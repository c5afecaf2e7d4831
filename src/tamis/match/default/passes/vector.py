"""The few steps that take 512 bits at once, for kernels.

Numba turns plain loops into vector code when they are long. A line of a bitmap is eight words, too
short for that: the loop below that ANDs ten lines takes 28 µs over 350,000 clauses as plain words
and 6 µs as one vector. So these steps are written in LLVM's own vector types, which every
processor has code for: one 512-bit register where there are such, several smaller ones elsewhere.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS = 8  # of a line
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
    """out[at:at + 8] = the AND or OR of `count` lines; gives a bit for each word with any set."""
    kinds = signature.args
    words = builder.gep(
        _data(context, builder, kinds[0], args[0]),
        [_index(context, builder, kinds[1], args[1])],
    )
    offsets = builder.gep(
        _data(context, builder, kinds[2], args[2]),
        [_index(context, builder, kinds[3], args[3])],
    )
    out = builder.gep(
        _data(context, builder, kinds[5], args[5]),
        [_index(context, builder, kinds[6], args[6])],
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

    `lines` is uint16. Gives a number with bit w set where word w has any bit left.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _combine(context, builder, signature, args, -1, "and_")

    return types.int64(words, base, lines, first, count, out, at), build


@intrinsic
def or_lines(
    context: Any, words: Any, base: Any, lines: Any, first: Any, count: Any, out: Any, at: Any
) -> Any:
    """OR lines, as `and_lines` does AND."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _combine(context, builder, signature, args, 0, "or_")

    return types.int64(words, base, lines, first, count, out, at), build


@intrinsic
def pack(context: Any, slots: Any, at: Any, mask: Any, out: Any, to: Any) -> Any:
    """Write those of `slots[at:at + 16]` whose bit in `mask` is set to `out[to:]`, in order.

    Sixteen places of `out` are written, whatever the mask. Both arrays are int32.
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
    """How many bits of a word are set."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), build


@intrinsic
def trailing(context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set; there must be one."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), build


LANES = 32  # 16-bit numbers of a line
_LANES = ir.VectorType(ir.IntType(16), LANES)


@intrinsic
def above(context: Any, left: Any, at: Any, right: Any, to: Any) -> Any:
    """How `left[at:at + 32]` compares with `right[to:to + 32]`, both int16, lane by lane.

    2 where all are greater, 1 where all are greater or equal, otherwise 0.
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
"""Whether `tell` is one instruction; elsewhere it is many, and taking bit by bit is quicker."""


@intrinsic
def tell(context: Any, word: Any, first: Any, out: Any, at: Any) -> Any:
    """Write the places of the bits of a word, counted from `first`, to `out[at:]`, which is int32.

    Up to sixteen more places of `out` may be written. Gives where they end.
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
    """Have `array[at]` brought into the cache, without waiting for it."""

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
