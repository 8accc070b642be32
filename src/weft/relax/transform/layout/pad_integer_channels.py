"""PadIntegerChannels: pads the channels and filters of integer convolutions to multiples of four.

Before: a convolution of small integers, summed in int32, from 3 channels to 21. After: one channel
of zeros is added to data and kernel, and three filters of zeros, whose results are cut off. The
channels can then be put in blocks (``block_channels``), and instructions take four channels at a
time (``Machine.dot_products``).
"""

from __future__ import annotations

from typing import Final

from weft.ir.node import expect
from weft.ir.transform import FunctionPass
from weft.relax import op
from weft.relax.expr import Call, Expr, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.layout.centred import dtype_of
from weft.relax.transform.passes import make_function_pass
from weft.target.machine import machine_of
from weft.target.target import Target

_TOGETHER: Final = 4
_SMALL: Final = ("int8", "uint8", "int16")


class _Padder(PyExprMutator):
    def visit_call_(self, call: Call) -> Expr:
        conv = expect(super().visit_call_(call), Call)
        if not isinstance(conv, Call) or conv.op is not IMAGE_CONVOLUTION:
            return conv
        if not _is_of_integers(conv):
            return conv
        sizes = geometry_of(conv)
        if sizes is None or sizes.layouts.names[:2] != ("NCHW", "OIHW") or not sizes.is_dense:
            return conv
        filters, channels = constant_value(sizes.filters), constant_value(sizes.depth)
        if filters is None or channels is None:
            return conv
        more, deeper = -filters % _TOGETHER, -channels % _TOGETHER
        if not more and not deeper:
            return conv
        data = self.padded(conv.args[0], 0, deeper)
        whole = Call(IMAGE_CONVOLUTION, [data, self.padded(conv.args[1], more, deeper)], conv.attrs)
        if not more:
            return whole
        return op.strided_slice(self.builder_.emit(whole), [1], [0], [filters], [1])

    def padded(self, tensor: Expr, first: int, second: int) -> Expr:
        """Append zeros: ``first`` along the first axis, ``second`` along the second one."""
        if not first and not second:
            return tensor
        return self.builder_.emit(op.nn.pad(tensor, (0, first, 0, second, 0, 0, 0, 0)))


def _is_of_integers(call: Call) -> bool:
    is_summed = str(call.attrs["out_dtype"]) == "int32"
    return is_summed and all(dtype_of(arg) in _SMALL for arg in call.args)


def _padded(func: Function) -> Function:
    target = Target.current(allow_none=True)
    if func.attrs.get("Primitive") or not machine_of(target).dot_products:
        return func
    return _Padder().visit_expr(func)


def PadIntegerChannels() -> FunctionPass:  # noqa: N802 - a pass
    """Add channels and filters of zeros to convolutions of integers, to multiples of four."""
    return make_function_pass("PadIntegerChannels", _padded)
