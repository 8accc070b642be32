"""PadChannels: zeros make the channels and filters of convolutions multiples of four.

Before: a convolution from 30 channels to 62, with windows of 3x3. After: two channels of zeros are
added to data and kernel, and two filters of zeros, whose results are cut off. The channels can then
be put in blocks (``block_channels``).

- Small integers that are summed in int32 are always padded where the processor multiplies four of
  them at a time (``Machine.dot_products``).
- Floats are padded where vectors of pixels are no good: strides leave gaps between pixels, and an
  image has short rows. Windows of one pixel stay as they are (JoinPixels makes one row of the
  image), and so does a sequence, which is one long row, unless it is strided.

The number of filters becomes the one that takes the fewest vectors: 402 filters become 416, not
404, whose only block has four channels.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Call, Expr, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import CONVOLUTION_OPERATORS
from weft.relax.op.nn.geometry import Geometry, geometry_of
from weft.relax.struct_info import dtype_of
from weft.relax.transform.layout.block_channels import SMALLEST_BLOCK, block_of
from weft.relax.transform.passes import define_operator_pass
from weft.target.machine import machine_of, vector_count
from weft.target.target import Target

_SMALL: Final = ("int8", "uint8", "int16")
_FLOATS: Final = ("float32", "float64")


class _Padder(PyExprMutator):
    def __init__(self, width: int, pads_integers: bool) -> None:
        super().__init__()
        self.width, self.pads_integers = width, pads_integers

    def visit_call_(self, call: Call) -> Expr:
        conv = expect(super().visit_call_(call), Call)
        sizes = geometry_of(conv) if conv.op in CONVOLUTION_OPERATORS else None
        more, deeper = (0, 0) if sizes is None else self.missing(conv, sizes)
        if sizes is None or not (more or deeper):
            return conv
        data = self.padded(conv.args[0], 0, deeper)
        whole = Call(conv.op, [data, self.padded(conv.args[1], more, deeper)], conv.attrs)
        if not more:
            return whole
        return op.strided_slice(self.builder_.emit(whole), [1], [0], [sizes.filters], [1])

    def missing(self, conv: Call, sizes: Geometry) -> tuple[int, int]:
        """How many filters, and how many channels, to add."""
        filters, channels = constant_value(sizes.filters), constant_value(sizes.depth)
        plain = (f"NC{sizes.letters}", f"OI{sizes.letters}", f"NC{sizes.letters}")
        if sizes.layouts.names != plain or not sizes.is_dense:
            return 0, 0
        if filters is None or channels is None:
            return 0, 0
        deeper = -channels % SMALLEST_BLOCK
        if _is_of_integers(conv):
            more = -filters % SMALLEST_BLOCK
            return (more, deeper) if self.pads_integers else (0, 0)
        if dtype_of(conv.args[0]) not in _FLOATS or not _needs_blocks(sizes, filters, self.width):
            return 0, 0
        more = whole_vectors(filters, self.width) - filters
        return more, deeper if channels > SMALLEST_BLOCK else 0

    def padded(self, tensor: Expr, first: int, second: int) -> Expr:
        """Append zeros: ``first`` along the first axis, ``second`` along the second one."""
        if not first and not second:
            return tensor
        rest = [0] * (2 * tensor.struct_info.ndim - 4)
        return self.builder_.emit(op.nn.pad(tensor, (0, first, 0, second, *rest)))


def _is_of_integers(call: Call) -> bool:
    is_summed = str(call.attrs["out_dtype"]) == "int32"
    return is_summed and all(dtype_of(arg) in _SMALL for arg in call.args)


def _needs_blocks(sizes: Geometry, filters: int, width: int) -> bool:
    """Whether vectors of channels are better than vectors of pixels."""
    if any(step != 1 for step in sizes.steps):
        return filters >= SMALLEST_BLOCK
    return len(sizes.space) > 1 and not sizes.is_pointwise and filters > width


def whole_vectors(filters: int, width: int) -> int:
    """The multiple of four from ``filters`` on whose blocks take the fewest vectors.

    >>> whole_vectors(402, 16), whole_vectors(21, 16), whole_vectors(64, 16)
    (416, 24, 64)
    """
    if filters % SMALLEST_BLOCK == 0:
        return filters
    least = filters + -filters % SMALLEST_BLOCK
    padded = range(least, filters + width + SMALLEST_BLOCK, SMALLEST_BLOCK)
    return min(padded, key=partial(_vectors, width))


def _vectors(width: int, filters: int) -> int:
    """The number of vectors of ``filters`` in blocks."""
    block = block_of(filters, width)
    return filters // block * vector_count(block, width)


def pad_channels(func: Function, width: int = 16) -> Function:
    """The function with channels and filters of zeros where blocks of them are faster."""
    machine = machine_of(Target.current(allow_none=True))
    return _Padder(width, bool(machine.dot_products)).visit_expr(func)


PadChannels = define_operator_pass("PadChannels", pad_channels)
