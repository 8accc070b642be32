"""BlockChannels: convolutions work on channels in blocks that fill vectors.

Before: ``convolution(x, w)`` of 64 channels to 128 in ``NCHW``. After, for vectors of 16: data in
``NCHW16c``, kernel in ``OIHW16i16o``, result in ``NCHW16c``. What lies between convolutions
follows, so that a network is converted where it starts and where it ends (ConvertLayout; Liu et
al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019).

A tensor has the block that divides its channels and takes the fewest vectors, such as one of 16 and
one of 8 for 24 channels; the block of the result need not be that of the data. Programs may have
channels last: ``NHWC`` becomes the same blocks. Few input channels (3 of an image) are not blocked,
and a depthwise kernel has blocks of one kind. Other grouped
convolutions are blocked where no block crosses a group. The rest stays in the layout that the
program names; so does the only convolution of a function where pixels or channels make vectors that
are as good: both conversions would be for it alone (integers need channels side by side).
Convolutions of one pixel (the gates of squeeze and excitation) follow the others, and are no reason
to convert what they are multiplied by.
"""

from __future__ import annotations

from typing import Final

from weft.ir.functor import collect
from weft.ir.transform import FunctionPass
from weft.relax.expr import Call, Function
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import Geometry, geometry_of
from weft.relax.transform.layout.convert_layout import with_layouts
from weft.relax.transform.passes import make_function_pass

_SMALLEST: Final = 4
"""Channels that are worth a block."""
_WIDEST: Final = 4
"""Vectors of a block at most."""
_PIXELS: Final = 8
"""Vectors that pixels fill from which on the last one, which they may not fill, counts little."""
_WINDOW: Final = 5
"""The height and width of a depthwise window whose loads from the side cost little."""


def BlockChannels(width: int = 16) -> FunctionPass:  # noqa: N802 - a pass
    """Put the channels of convolutions of images into blocks for vectors of ``width``."""

    def run(func: Function) -> Function:
        convolutions = [
            call for call in collect(func, Call)
            if call.op is IMAGE_CONVOLUTION and not _has_one_pixel(call)
        ]  # fmt: skip
        if not convolutions or (len(convolutions) == 1 and _makes_vectors(convolutions[0], width)):
            return func
        return with_layouts(func, lambda call: blocked_layouts(call, width))

    return make_function_pass("BlockChannels", run)


def _has_one_pixel(call: Call) -> bool:
    """Whether the channels of an image are next to each other whatever the layout says."""
    sizes = geometry_of(call)
    return sizes is not None and not sizes.is_blocked and sizes.image == (1, 1)


def _makes_vectors(call: Call, width: int) -> bool:
    """Whether the program's own layout is as good for vectors as blocks of channels are."""
    sizes = geometry_of(call)
    if sizes is None or sizes.is_blocked:
        return False
    is_float = str(call.attrs["out_dtype"]) != "int32"
    return _has_channels_side_by_side(sizes) or _has_vectors_of_pixels(sizes, is_float, width)


def _has_channels_side_by_side(sizes: Geometry) -> bool:
    """Whether channels are last in data and result, and no algorithm needs them in blocks.

    That is Winograd's, for windows of stride one that sum channels.
    """
    data, _, out = sizes.layouts.names
    if {data[-1], out[-1]} != {"C"}:
        return False
    is_summed = sizes.is_dense and sizes.steps == (1, 1)
    return sizes.is_pointwise or not is_summed


def _has_vectors_of_pixels(sizes: Geometry, is_float: bool, width: int) -> bool:
    """Whether the pixels of an image are as good for vectors as blocks of its channels are.

    A window of 1x1, for which the image is one row (JoinPixels), at eight vectors or more: the rest
    that fills none is then small. A depthwise window of at most 5x5, whose loads from the side cost
    little, where rows of results fill most of a vector.
    """
    if sizes.layouts.names[:2] != ("NCHW", "OIHW") or sizes.is_dilated:
        return False
    (rows, row), (high, wide) = sizes.image, sizes.kernel
    if rows is None or row is None or high is None or wide is None:
        return False
    if sizes.is_dense:
        is_product = sizes.is_pointwise and sizes.steps == (1, 1)
        return is_float and is_product and rows * row >= _PIXELS * width
    step = sizes.steps[1] or 1
    return sizes.is_depthwise and max(high, wide) <= _WINDOW and _fills(-(-row // step), width)


def _fills(row: int, width: int) -> bool:
    """Whether rows fill at least three quarters of vectors, or of half ones.

    >>> _fills(7, 16), _fills(9, 16), _fills(12, 16), _fills(17, 16)
    (True, False, True, True)
    """
    lanes = min(1 << (row - 1).bit_length(), width)
    return lanes * 2 >= width and row * 4 >= lanes * 3


def blocked_layouts(call: Call, width: int) -> tuple[str, str, str] | None:
    """The layouts of data, kernel and result of a convolution; None where nothing is blocked."""
    sizes = geometry_of(call) if call.op is IMAGE_CONVOLUTION else None
    if sizes is None or sizes.is_blocked:
        return None
    channels, filters = constant_value(sizes.channels), constant_value(sizes.filters)
    if channels is None or filters is None:
        return None
    return _layouts(channels, filters, sizes.groups, sizes.layouts.data.name, width)


def _layouts(
    channels: int, filters: int, groups: int, plain: str, width: int
) -> tuple[str, str, str] | None:
    into, out = block_of(channels, width), block_of(filters, width)
    if out == 1:
        return None
    if groups > 1 and channels == groups == filters:
        return f"NCHW{into}c", f"OIHW{out}o", f"NCHW{out}c"
    if groups > 1 and (channels // groups % into or filters // groups % out):
        into, out = block_of(channels // groups, width), block_of(filters // groups, width)
        if min(into, out) < width:
            return None
    if groups > 1 and into == 1:
        return None
    if into == 1:
        return (plain, f"OIHW{out}o", f"NCHW{out}c") if channels < _SMALLEST else None
    return f"NCHW{into}c", f"OIHW{into}i{out}o", f"NCHW{out}c"


def block_of(channels: int, width: int) -> int:
    """The block of channels that takes the fewest vectors; 1 if none is worth it.

    Up to four vectors of ``width``, the last of which may be shorter: 24 channels are a vector of
    16 and one of 8, not three of 8. Where several take as few, the smallest.

    >>> block_of(64, 16), block_of(24, 16), block_of(1000, 16), block_of(3, 16)
    (16, 24, 40, 1)
    """
    sizes = [
        size for size in range(_SMALLEST, _WIDEST * width + 1, _SMALLEST) if channels % size == 0
    ]
    return min(sizes, key=lambda size: (_vectors(size, width) / size, size), default=1)


def _vectors(size: int, width: int) -> int:
    """Vectors that hold so many channels; a tail is taken apart into powers of two."""
    whole, tail = divmod(size, width)
    return whole + tail.bit_count()
