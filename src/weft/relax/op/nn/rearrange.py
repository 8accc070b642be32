"""Moving elements between channels and space."""

from __future__ import annotations

from weft import topi
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.definition import operator
from weft.relax.op.infer import dims_of, fail, result, tensor
from weft.relax.op.lowering import dims
from weft.relax.op.reference.nn import rearrange as reference
from weft.relax.op.requirements import Required, multiple
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import floordiv


def infer_pixel_shuffle(call: Call) -> TensorStructInfo:
    """(..., channels / factor ** 2, height * factor, width * factor)."""
    info, factor = tensor(call, 0), call.attrs["upscale_factor"]
    if factor < 1:
        fail(call, f"upscale_factor: expected 1 or more, got {factor}")
    if info.ndim != -1 and info.ndim < 3:
        fail(call, f"data: expected at least 3 dimensions, got {info.ndim}: {info}")
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    *outer, channels, height, width = dims
    if (constant_value(channels) or 0) % factor**2:
        fail(call, f"{channels} channels are not a multiple of upscale_factor ** 2 = {factor**2}")
    kept = simplified(floordiv(channels, factor**2))
    shuffled = [*outer, kept, simplified(height * factor), simplified(width * factor)]
    return result(shuffled, info.dtype, vdevice=info.vdevice)


def _whole_groups(call: Call) -> Required:
    *outer, channels, height, width = dims(call.args[0])
    factor = call.attrs["upscale_factor"] ** 2
    return {0: [*outer, multiple(channels, factor), height, width]}


@operator(
    "relax.nn.pixel_shuffle",
    infer_pixel_shuffle,
    te=topi.nn.pixel_shuffle,
    requires=_whole_groups,
    numpy=reference.pixel_shuffle,
)
def pixel_shuffle(data: Expr, upscale_factor: int) -> None:
    """An image ``upscale_factor`` times larger, whose new pixels come from groups of channels."""
