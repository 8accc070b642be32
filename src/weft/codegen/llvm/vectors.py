"""Vectors made of lanes: ramps, broadcasts and shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm import memory
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import int_constant, llvm_type
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.lowering.building import constant_of


def ramp(em: Emitter, expr: e.Ramp) -> str:
    """A Ramp: the base in every lane, plus 0, 1, 2 ... times the stride."""
    dtype = expr.dtype
    kind, element = llvm_type(dtype), llvm_type(dtype.element)
    base = memory.broadcast(em, em.value(expr.base), dtype)
    stride = constant_of(expr.stride)
    numbers = range(dtype.lanes)
    if stride is not None:
        steps = ", ".join([f"{element} {int_constant(n * stride, dtype.element)}" for n in numbers])
        return em.b.op(f"add {kind} {base}, <{steps}>")
    lanes = ", ".join([f"{element} {n}" for n in numbers])
    step = memory.broadcast(em, em.value(expr.stride), dtype)
    scaled = em.b.op(f"mul {kind} {step}, <{lanes}>")
    return em.b.op(f"add {kind} {base}, {scaled}")


def broadcast(em: Emitter, expr: e.Broadcast) -> str:
    """A Broadcast: one value in every lane; of a constant it is a constant."""
    value = em.value(expr.value)
    if expr.dtype.lanes == 1:
        return value
    if isinstance(expr.value, (IntImm, FloatImm)):
        return f"splat ({llvm_type(expr.value.dtype)} {value})"
    return memory.broadcast(em, value, expr.dtype)


def shuffle(em: Emitter, expr: e.Shuffle) -> str:
    """A Shuffle: by shuffles of whole vectors where it can be, else lane by lane.

    One or two vectors of one type take a single instruction. 4, 8, 16 ... whole vectors side by
    side are joined in pairs.
    """
    if all(isinstance(vector, (IntImm, FloatImm)) for vector in expr.vectors):
        return _constant_vector(em, expr)
    kinds = {vector.dtype for vector in expr.vectors}
    number = len(expr.vectors)
    if len(kinds) == 1 and len(expr.indices) > 1 and expr.vectors[0].dtype.lanes > 1:
        lanes = expr.vectors[0].dtype.lanes
        order = [_constant_lane(em, index, number * lanes) for index in expr.indices]
        values = [em.value(vector) for vector in expr.vectors]
        if number <= 2:
            return _picked(em, values, expr.vectors[0].dtype, order)
        if order == [*range(number * lanes)] and number.bit_count() == 1:
            return _joined(em, values, expr.vectors[0].dtype)
    return _lane_by_lane(em, expr)


def _constant_vector(em: Emitter, expr: e.Shuffle) -> str:
    """A Shuffle of numbers as one constant: ``<float 1.0, float 2.0>``."""
    order = [_constant_lane(em, index, len(expr.vectors)) for index in expr.indices]
    values = [em.value(expr.vectors[at]) for at in order]
    element = llvm_type(expr.dtype.element)
    return values[0] if len(values) == 1 else f"<{', '.join([f'{element} {v}' for v in values])}>"


def _picked(em: Emitter, values: Sequence[str], dtype: DataType, order: Sequence[int]) -> str:
    """The lanes ``order`` of one vector, or of two laid side by side."""
    kind, other = llvm_type(dtype), values[1] if len(values) > 1 else "poison"
    mask = ", ".join([f"i32 {lane}" for lane in order])
    return em.b.op(
        f"shufflevector {kind} {values[0]}, {kind} {other}, <{len(order)} x i32> <{mask}>"
    )


def _joined(em: Emitter, values: Sequence[str], dtype: DataType) -> str:
    """Vectors side by side as one: pairs are joined, then pairs of pairs, until one is left.

    Their number is a power of two.
    """
    while len(values) > 1:
        order = [*range(2 * dtype.lanes)]
        values = [_picked(em, values[at : at + 2], dtype, order) for at in range(0, len(values), 2)]
        dtype = dtype.element.with_lanes(2 * dtype.lanes)
    return values[0]


def _lane_by_lane(em: Emitter, expr: e.Shuffle) -> str:
    """A Shuffle: each lane is taken out of its vector and put into the result."""
    count = sum(vector.dtype.lanes for vector in expr.vectors)
    order = [_constant_lane(em, index, count) for index in expr.indices]
    lanes: list[tuple[str, str, int]] = []
    operands = [em.value(vector) for vector in expr.vectors]
    for vector, operand in zip(expr.vectors, operands, strict=True):
        kind = llvm_type(vector.dtype)
        lanes += [(operand, kind, lane) for lane in range(vector.dtype.lanes)]
    picked = [lanes[at] for at in order]
    element = llvm_type(expr.dtype.element)
    scalars = [
        operand if kind == element else em.b.op(f"extractelement {kind} {operand}, i64 {lane}")
        for operand, kind, lane in picked
    ]
    if len(scalars) == 1:
        return scalars[0]
    kind, result = llvm_type(expr.dtype), "poison"
    for lane, scalar in enumerate(scalars):
        result = em.b.op(f"insertelement {kind} {result}, {element} {scalar}, i64 {lane}")
    return result


def _constant_lane(em: Emitter, index: PrimExpr, count: int) -> int:
    """The number of a lane that a Shuffle picks out of ``count``."""
    value = constant_of(index)
    if value is None or not 0 <= value < count:
        raise em.internal(f"expected constant shuffle indices below {count}")
    return value
