"""Functions of integers that need a loop for each element: power, greatest common divisor."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.te.operation import extern
from weft.te.tensor import Operand, Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.extents import Shape, broadcast_indices, broadcast_shape, product, unravel_index
from weft.topi.simplify import simplified

Loop = Callable[[IRBuilder, BufferVar, PrimExpr, PrimExpr], PrimExpr]
"""(builder, three cells, left, right) -> the result, after emitting the statements for it."""


def integer_power(lhs: Operand, rhs: Operand) -> Tensor:
    """lhs ** rhs with wrapping, by squaring; for a negative exponent, 1 / lhs ** -rhs truncated."""
    return _looped("integer_power", lhs, rhs, _power)


def gcd(lhs: Operand, rhs: Operand) -> Tensor:
    """The greatest common divisor by Euclid's algorithm; gcd(0, n) is |n|."""
    return _looped("gcd", lhs, rhs, _gcd)


def _power(ib: IRBuilder, state: BufferVar, x: PrimExpr, exponent: PrimExpr) -> PrimExpr:
    unit, zero = op.const(1, x.dtype), op.const(0, x.dtype)
    state[0], state[1], state[2] = unit, x, exponent
    with ib.while_loop(op.greater(state[2], zero)):
        with ib.if_scope(op.not_equal(op.bitwise_and(state[2], unit), zero)):
            state[0] = state[0] * state[1]
        state[1] = state[1] * state[1]
        state[2] = op.right_shift(state[2], unit)
    if x.dtype.is_uint:
        return state[0]
    minus = op.const(-1, x.dtype)
    even = op.equal(op.bitwise_and(exponent, unit), zero)
    inverse = op.select(op.equal(x, minus), op.select(even, unit, minus), zero)
    inverse = op.select(op.equal(x, unit), unit, inverse)
    return op.select(op.less(exponent, zero), inverse, state[0])


def _gcd(ib: IRBuilder, state: BufferVar, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    zero = op.const(0, x.dtype)
    state[0], state[1] = op.abs(x), op.abs(y)
    with ib.while_loop(op.not_equal(state[1], zero)):
        state[2] = op.truncmod(state[0], state[1])
        state[0] = state[1]
        state[1] = state[2]
    return state[0]


def _looped(name: str, lhs: Operand, rhs: Operand, loop: Loop) -> Tensor:
    """``loop`` for every pair of elements of operands that broadcast, with three scratch cells."""
    tensors = [item for item in (lhs, rhs) if isinstance(item, Tensor)]
    dtype = tensors[0].dtype
    shape: Shape = tensors[0].shape
    for tensor in tensors[1:]:
        shape = broadcast_shape(shape, tensor.shape, name)
    count = simplified(as_prim_expr(product(shape)))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        sources = iter([(ib.buffer_ptr(buffer), buffer.shape) for buffer in ins])
        read = [next(sources) if isinstance(item, Tensor) else item for item in (lhs, rhs)]
        target = ib.buffer_ptr(outs[0])
        with ib.for_range(0, count, "i", kind="parallel") as i:
            point = tuple(unravel_index(i, shape))
            state = ib.allocate(dtype, [3], "state")
            left, right = [
                ib.let(side, item[0][tuple(broadcast_indices(item[1], shape, point))])
                if isinstance(item, tuple)
                else op.cast(dtype, item)
                for side, item in zip(("left", "right"), read, strict=True)
            ]
            target[point] = loop(ib, state, left, right)
        return ib.get()

    reads = [
        decl_buffer(item.shape, item.dtype, side, data_alignment=8)
        for item, side in ((lhs, "lhs"), (rhs, "rhs"))
        if isinstance(item, Tensor)
    ]
    return extern(
        shape,
        tensors,
        body,
        name=name,
        dtype=[dtype],
        in_buffers=reads,
        out_buffers=[decl_buffer(shape, dtype, "out_buf", data_alignment=8)],
    )
