"""Windows of convolutions and pools: how far they reach, where the padding stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir

LAYOUTS = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
"""Spatial axes -> layouts of data, of a convolution's kernel, of a transposed one's."""


def by_axis(before: Sequence[Dim], after: Sequence[Dim]) -> list[Dim]:
    """The amounts before and after each axis, axis by axis, as ``nn.pad`` takes them."""
    return [amount for pair in zip(before, after, strict=True) for amount in pair]


@dataclass
class Windows:
    """The windows of one node; every list has a number for each spatial axis."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[Dim]
    after: list[Dim]

    @property
    def padding(self) -> list[Dim]:
        """Padding as Relax's operators take it: all at the front, then all at the back."""
        return [*self.before, *self.after]

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel)


def windows_of(
    context: Context,
    x: Value,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Windows:
    """The windows of a kernel, by the attributes as the node has them."""
    rank = context.rank(x, "X") - 2
    if rank < 1 or rank > 3 or len(kernel) != rank:
        context.fail(
            f"expected 1 to 3 spatial axes and a kernel for each, got data of {rank + 2} dimensions"
            f" and kernel {list(kernel)}"
        )
    steps, gaps = list(strides or [1] * rank), list(dilations or [1] * rank)
    pads = pads or [0] * (2 * rank)
    check_windows(context, rank, steps, gaps, pads)
    check_auto_pad(context, auto_pad or "NOTSET")
    windows = Windows(list(kernel), steps, gaps, [*pads[:rank]], [*pads[rank:]])
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        spatial = context.shape(x, "X")[2:]
        _pad_same(windows, spatial, auto_pad == "SAME_LOWER")
    elif auto_pad == "VALID":
        windows.before, windows.after = [0] * rank, [0] * rank
    return windows


def check_windows(
    context: Context,
    rank: int,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> None:
    """Raise OnnxNodeError unless there is one number for each spatial axis (of pads two)."""
    for name, numbers, count, least in (
        ("strides", strides, rank, 1),
        ("dilations", dilations, rank, 1),
        ("pads", pads, 2 * rank, 0),
    ):
        if len(numbers) != count or min(numbers, default=least) < least:
            context.fail(
                f"{name}: expected {count} numbers of at least {least}, got {list(numbers)}"
            )


def check_auto_pad(context: Context, auto: str) -> None:
    """Raise OnnxNodeError for a way to pad that ONNX does not have."""
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        context.fail(f"auto_pad: expected NOTSET, VALID or SAME_UPPER/LOWER, got {auto!r}")


def _pad_same(windows: Windows, spatial: Sequence[Dim], lower: bool) -> None:
    """Pad to ceil(size / stride) windows; with ``lower`` the larger half stands in front."""
    before, after = [], []
    for axis, size in enumerate(spatial):
        stride = windows.strides[axis]
        reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        if isinstance(size, int):
            whole: Dim = max((-(-size // stride) - 1) * stride + reach - size, 0)
            small: Dim = whole // 2
        else:
            steps = tir.floordiv(as_prim(size) + (stride - 1), stride)
            whole = simplified(tir.max((steps - 1) * stride + reach - size, as_prim(0)))
            small = simplified(tir.floordiv(whole, 2))
        large = whole - small
        before.append(large if lower else small)
        after.append(small if lower else large)
    windows.before, windows.after = before, after
