"""JoinPixels: to a convolution with windows of one pixel, an image becomes one row of pixels.

Before: ``convolution(x, w)`` of an image of 56 x 56 in ``NCHW`` with windows of one pixel. After:
``reshape(convolution(reshape(x, (n, c, 1, 3136)), w), (n, f, 56, 56))``. Register tiles then cut
one long row, whatever the width of the image. (A row of 56 pixels is three and a half vectors of
16, which makes poor tiles.) Reshapes move no data, and SimplifyDataMovement moves them past the
element-wise operators that follow. That such a convolution is a product of matrices is well known
(cuDNN, Chetlur et al., 2014).

Convolutions whose channels are in blocks (BlockChannels) stay as they are: their tiles have pixels
as rows.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Call, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.passes import define_operator_pass

Dims = tuple[PrimExpr | int, ...]
"""A shape."""


class _Joiner(PyExprMutator):
    def visit_call_(self, call: Call) -> RelaxExpr:
        rewritten = expect(super().visit_call_(call), Call)
        images = images_of_pixels(rewritten) if rewritten.op is IMAGE_CONVOLUTION else None
        if images is None:
            return rewritten
        before, after = images
        row = self.builder_.emit(op.reshape(rewritten.args[0], _joined(before)))
        product = Call(IMAGE_CONVOLUTION, [row, rewritten.args[1]], rewritten.attrs)
        return self.builder_.normalize(op.reshape(self.builder_.emit(product), after))


def _joined(image: Dims) -> Dims:
    batch, channels, high, wide = image
    return batch, channels, 1, high * wide


def images_of_pixels(call: Call) -> tuple[Dims, Dims] | None:
    """The shapes of data and result of a convolution with windows of one pixel, in ``NCHW``.

    None for other convolutions, and if the image is one row already.
    """
    sizes, result = geometry_of(call), tensor_dims(call.struct_info)
    if sizes is None or result is None or sizes.layouts.names != ("NCHW", "OIHW", "NCHW"):
        return None
    high, wide = sizes.image
    if not all(window.is_one_pixel for window in sizes.space) or high is None or wide is None:
        return None
    data = (sizes.batch, sizes.channels, high, wide)
    return (data, tuple(result)) if high > 1 else None


def join_pixels(func: Function) -> Function:
    """The function with one row as the image of windows of one pixel."""
    return _Joiner().visit_expr(func)


JoinPixels = define_operator_pass("JoinPixels", join_pixels)
