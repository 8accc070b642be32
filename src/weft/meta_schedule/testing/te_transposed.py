"""A transposed convolution as one tensor expression over padded data."""

from __future__ import annotations

from typing import Any

from weft import te, topi
from weft.te.tensor import Tensor
from weft.tir import op


def conv2d_transpose_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    in_dtype: str = "float32", out_dtype: str = "float32",
) -> tuple[Tensor, ...]:  # fmt: skip
    """A transposed convolution, channels last: data, weight, result.

    Steps between the elements of the data are spread by choosing zero inside the sum, so that a
    schedule that unrolls can leave out these products.
    """
    data = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight", dtype=in_dtype)
    before = kernel_size - 1 - padding
    margin = (before + stride - 1) // stride
    padded = topi.nn.pad(data, [0, margin, margin, 0], [0, margin, margin, 0])
    border = (stride - before % stride) % stride

    def spread(n: Any, h: Any, w: Any, c: Any) -> Any:
        """The data with ``stride - 1`` zeros between its elements."""
        if stride == 1:
            return padded[n, h, w, c]
        is_element = te.all((h % stride).equal(0), (w % stride).equal(0))
        value = padded[n, h // stride, w // stride, c]
        return te.if_then_else(is_element, value, op.const(0.0, padded.dtype))

    height, width = ((size - 1) * stride - 2 * padding + kernel_size for size in (H, W))
    rc = te.reduce_axis((0, CI), name="rc")
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    last = kernel_size - 1

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        left = spread(n, h + rh + border, w + rw + border, rc).astype(out_dtype)
        right = weight[last - rh, last - rw, rc, co].astype(out_dtype)
        return te.sum(left * right, axis=[rh, rw, rc])

    result = te.compute((N, height, width, CO), element, name="conv2d_transpose_nhwc")
    return data, weight, result
