"""Products of a recurrent layer's state and weights where both are bytes.

The state is rounded to 256 steps (``state_quantization``), so that it is uint8; the weights are
int8. Four products are added up at a time (``T.dot_four_bytes``), in int32, where they are exact.
As step ``place`` stands for 0, ``place`` times the sum of the weights is subtracted from a sum.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.expr import Extent, PrimExpr
from weft.te.operation import as_list, extern
from weft.te.primfunc import LAYOUT_REWRITE_PREPROC
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Ramp
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.extents import is_const
from weft.topi.nn.state_quantization import Rounding, emit_rounding
from weft.topi.simplify import simplified

BYTES: Final = 4
"""How many products are added up at a time."""


def groups_of(size: Extent) -> Extent:
    """How many groups of four bytes hold so many."""
    return simplified(op.floordiv(op.convert(size) + (BYTES - 1), BYTES))


def in_byte_blocks(weight: Tensor, width: Extent) -> Tensor:
    """int8 weights as int32 (blocks, groups + 1, gates of a block).

    A number holds four weights of a gate, zeros behind the last one; the last row holds the sum of
    all weights of each gate. Weights that are known are laid out once, when the model is built.
    """
    gates, size = weight.shape
    blocks, groups = simplified(op.floordiv(gates, width)), groups_of(size)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        [given], [packed] = map(ib.buffer_ptr, ins), map(ib.buffer_ptr, outs)
        with ib.for_range(0, blocks, "block") as block, ib.for_range(0, width, "g") as g:
            packed[block, groups, g] = op.const(0, "int32")
            with ib.for_range(0, groups, "group") as group:
                packed[block, group, g] = op.const(0, "int32")
            with ib.for_range(0, size, "k") as k:
                number = op.cast("int32", given[block * width + g, k])
                packed[block, groups, g] = packed[block, groups, g] + number
                group, byte = op.floordiv(k, BYTES), op.cast("int32", op.floormod(k, BYTES))
                bits = op.bitwise_and(number, op.const(255, "int32")) << (byte * 8)
                packed[block, group, g] = op.bitwise_or(packed[block, group, g], bits)
        return ib.get()

    shape = [blocks, simplified(groups + 1), width]
    packed = extern(
        [shape], [weight], body, name="recurrent_bytes", dtype=["int32"],
        attrs={LAYOUT_REWRITE_PREPROC: True},
        in_buffers=[decl_buffer(weight.shape, weight.dtype, "weight")],
        out_buffers=[decl_buffer(shape, "int32", "packed")],
    )  # fmt: skip
    return as_list(packed)[0]


class ByteState(NamedTuple):
    """The rounded states of some sequences, in rows of whole groups, and their steps."""

    rows: BufferVar
    begin: Extent
    groups: Extent
    rounding: Rounding

    def four(self, row: int, group: PrimExpr) -> PrimExpr:
        """Four bytes of a sequence as an int32."""
        at = self.begin + (row * self.groups + group) * BYTES
        return op.reinterpret("int32", self.rows[Ramp(at, op.const(1, at.dtype), BYTES)])

    def behind(self, sequences: PrimExpr) -> ByteState:
        """The states from a sequence on."""
        return self._replace(begin=sequences * self.groups * BYTES)


def allocate_bytes(ib: IRBuilder, shape: tuple[Extent, Extent]) -> BufferVar:
    """Memory for the rounded states (batch, hidden), with zeros behind each row."""
    batch, size = shape
    width = simplified(groups_of(size) * BYTES)
    rows = ib.allocate("uint8", [simplified(batch * width)], "bytes")
    with ib.for_range(0, batch, "b") as b, ib.for_range(size, width, "j") as j:
        rows[b * width + j] = op.const(0, "uint8")
    return rows


def emit_bytes(
    ib: IRBuilder, state: BufferVar, rows: BufferVar, shape: tuple[Extent, Extent]
) -> ByteState:
    """Round the state (batch, hidden) as it is now, and store the numbers of its steps."""
    batch, size = shape
    groups, rounding = groups_of(size), emit_rounding(ib, state, shape)
    with ib.for_range(0, batch, "b") as b:
        with ib.for_range(0, size, "j", kind="vectorized" if is_const(size) else "serial") as j:
            step = rounding.step(state[b * size + j])
            rows[b * groups * BYTES + j] = op.cast("uint8", step)
    return ByteState(rows, op.const(0, "int64"), groups, rounding)


def emit_sums(
    ib: IRBuilder, weights: BufferVar, state: ByteState, place: tuple[PrimExpr, PrimExpr],
    part: Extent, rows: int,
) -> BufferVar:  # fmt: skip
    """Sums of ``part`` gates for ``rows`` sequences (rows * part), less those of zeros.

    ``place`` is the block of the weights and the first gate in it.
    """
    block, begin = place
    kind = "vectorized" if is_const(part) else "serial"
    held = ib.allocate("int32", [simplified(part * rows)], "held", scope="local")
    zero = ib.let("zero", op.cast("int32", state.rounding.place))
    for row in range(rows):
        with ib.for_range(0, part, "g", kind=kind) as g:
            of_zeros = zero * weights[block, state.groups, begin + g]
            held[row * part + g] = op.const(0, "int32") - of_zeros
    with ib.for_range(0, state.groups, "group") as group:
        fours = [ib.let("four", state.four(row, group)) for row in range(rows)]
        for row, four in enumerate(fours):
            with ib.for_range(0, part, "g", kind=kind) as g:
                at = row * part + g
                held[at] = op.dot_four_bytes(held[at], four, weights[block, group, begin + g])
    return held
