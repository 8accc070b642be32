"""ImageDecoder: the pixels of an image file, by a function that runs outside of kernels."""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr, StringImm
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value
from weft.relax.struct_info import TensorStructInfo
from weft.runtime import images


@converter("ImageDecoder", since=20)
def image_decoder(context: Context, encoded: Value, *, pixel_format: str) -> Expr:
    """The bytes of a file as uint8 (height, width, channels)."""
    if pixel_format not in images.FORMATS:
        context.fail(f"pixel_format: expected RGB, BGR or Grayscale, got {pixel_format!r}")
    images.pillow()
    kind = TensorStructInfo(None, "uint8", ndim=3)
    call = op.call_pure_packed(
        images.DECODE, encoded.expr, StringImm(pixel_format), sinfo_args=kind
    )
    channels = 1 if pixel_format == "Grayscale" else 3
    dims = [context.new_dim("height"), context.new_dim("width"), channels]
    return context.matched(context.emit(call), dims)
