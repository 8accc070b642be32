"""RewriteConvTranspose: a transposed convolution is a convolution whose results are interleaved.

A transposed convolution of stride s puts s - 1 zeros between neighbouring elements of the data and
then takes windows of k elements, most of which are zeros. Number the results before padding cuts
some off as Y = s * j + r. Without the zeros, result Y is the sum over t of
``x[j - t] * w[s * t + r]``. So the results with the same remainder r are a convolution of stride 1
with ceil(k / s) weights, and all s remainders together are one convolution with s times as many
filters, whose results are then interleaved (Shi et al., "Is the deconvolution layer the same as a
convolutional layer?", 2016).

Before: ``conv2d_transpose(x, w)``. After: ``call_tir(interleave, convolution(x, v))``, where ``v``
are the rearranged weights, which FoldConstant computes once if ``w`` is a constant. With stride 1
nothing is interleaved.

Padding may leave nothing of a symbolic image (``n`` results of ``n`` elements, three weights, and a
padding of 1 on both sides). A convolution has a result at least, so there one more zero pads the
data, and the interleaving leaves out what the zero gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from weft import topi
from weft.ir.expr import IntImm, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax import op as relax_op
from weft.relax.expr import Call, Expr
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import CONVOLUTIONS
from weft.relax.op.nn.geometry import SPATIAL, geometry_of
from weft.relax.transform.passes import UnfusedFunctions, mutate_module

_FORMS: Final = {
    Op.get(f"relax.nn.conv{rank}d_transpose"): (CONVOLUTIONS[rank], f"NC{space}", f"IO{space}")
    for rank, space in SPATIAL.items()
}
"""The convolution to use, and the layouts of data and weights that the pass knows."""


@dataclass(frozen=True)
class _Axis:
    """One spatial axis of a transposed convolution: stride, size of the window, the padding before
    (``low``) and after (``high``), the output padding (``extra``), and whether the number of
    results is known (``is_known``). The properties are the sizes of the convolution that replaces
    it.
    """

    stride: int
    window: int
    low: int
    high: int
    extra: int
    is_known: bool

    @property
    def taps(self) -> int:
        """How many weights each result has."""
        return -(-self.window // self.stride)

    @property
    def before(self) -> int:
        """How many zeros pad the data at the start."""
        return self.taps - 1 - self.low // self.stride

    @property
    def after(self) -> int:
        """How many zeros pad the data at the end: as many as the last result needs."""
        return (self.window - 1 - self.high + self.extra) // self.stride + self.spare

    @property
    def spare(self) -> int:
        """How many results of the convolution are left out: 1 where there might be none at all."""
        if self.is_known or self.low == 0 or self.start:
            return 0
        of_nothing = self.window + self.extra - self.low - self.high - self.stride
        return int(of_nothing <= 0)

    @property
    def start(self) -> int:
        """The remainder r of the first result."""
        return self.low % self.stride


class _Rewriter(UnfusedFunctions):
    def visit_call_(self, call: Call) -> Expr:
        rewritten = expect(super().visit_call_(call), Call)
        axes = _axes(rewritten)
        return rewritten if axes is None else self.rewritten(rewritten, axes)

    def rewritten(self, call: Call, axes: list[_Axis]) -> Expr:
        """The convolution, followed by the interleaving of its results."""
        attrs = call.attrs
        groups = int(attrs["groups"])
        convolution = _FORMS[call.op][0]
        weights = self.rearranged(call.args[1], groups, axes)
        padding = [axis.before for axis in axes] + [axis.after for axis in axes]
        parts = convolution(
            call.args[0], weights, padding=padding, groups=groups, out_dtype=attrs["out_dtype"]
        )
        factors = [axis.stride for axis in axes]
        if math.prod(factors) == 1 and not any(axis.spare for axis in axes):
            return self.builder_.normalize(parts)
        shape = list(tensor_dims(call.struct_info) or ())
        return self.builder_.call_te(
            topi.nn.interleave,
            self.builder_.emit(parts),
            factors,
            [axis.start for axis in axes],
            shape,
            groups,
            primfunc_name_hint="interleave",
        )

    def rearranged(self, weights: Expr, groups: int, axes: list[_Axis]) -> Expr:
        """The weights of the convolution.

        Weights of shape ``(c, f, k, ...)`` become ``(groups * parts * f, c / groups, taps, ...)``,
        where ``parts`` counts the remainders; the order of the taps is reversed.
        """
        emit, count = self.builder_.emit, len(axes)
        dims = tensor_dims(weights.struct_info) or ()
        channels, filters, *_ = [expect(dim, IntImm).value for dim in dims]
        parts = math.prod([axis.stride for axis in axes])
        pads = [amount for axis in axes for amount in (0, axis.taps * axis.stride - axis.window)]
        if any(pads):
            weights = emit(relax_op.nn.pad(weights, [0, 0, 0, 0, *pads]))
        cut = [size for axis in axes for size in (axis.taps, axis.stride)]
        weights = emit(relax_op.reshape(weights, [groups, channels // groups, filters, *cut]))
        for at in range(count):
            weights = emit(relax_op.flip(weights, 3 + 2 * at))
        order = [0, *range(4, 4 + 2 * count, 2), 2, 1, *range(3, 3 + 2 * count, 2)]
        weights = emit(relax_op.permute_dims(weights, order))
        taps = [axis.taps for axis in axes]
        shape = [groups * parts * filters, channels // groups, *taps]
        return emit(relax_op.reshape(weights, shape))


def _axes(call: RelaxExpr) -> list[_Axis] | None:
    """The spatial axes of a transposed convolution that can be rewritten; None for other calls."""
    if not isinstance(call, Call) or call.op not in _FORMS:
        return None
    form = _FORMS[call.op]
    sizes, dims = geometry_of(call), tensor_dims(call.struct_info)
    if sizes is None or dims is None or sizes.is_dilated:
        return None
    kernel = [constant_value(extent) for extent in (sizes.filters, sizes.depth)]
    if sizes.layouts.names != (form[1], form[2], form[1]) or {None, 0} & {*kernel, *sizes.kernel}:
        return None
    if 0 in [constant_value(dim) for dim in dims]:  # the convolution might have no window at all
        return None
    axes = []
    for window, extra, count in zip(
        sizes.space, call.attrs["output_padding"], dims[2:], strict=True
    ):
        numbers = (window.stride, window.size, window.before, window.after, extra)
        known = [value for value in map(constant_value, numbers) if value is not None]
        if len(known) < len(numbers):
            return None
        stride, size, low, high, added = known
        axes.append(_Axis(stride, size, low, high, added, constant_value(count) is not None))
    return axes if all(min(axis.before, axis.after) >= 0 for axis in axes) else None


def rewrite_conv_transpose(mod: IRModule) -> IRModule:
    """The module with transposed convolutions computed by convolutions of stride 1."""
    return mutate_module(mod, _Rewriter(mod))


RewriteConvTranspose = define_module_pass("RewriteConvTranspose", rewrite_conv_transpose)
