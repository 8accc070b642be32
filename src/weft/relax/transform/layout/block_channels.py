"""BlockChannels: convolutions work on blocks of channels that fill vectors.

Before: ``convolution(x, w)`` of 64 channels to 128 in ``NCHW``. After, for vectors of 16: data in
``NCHW16c``, kernel in ``OIHW16i16o``, result in ``NCHW16c``. The operators between convolutions
work on the same layout, so that a network is converted only at its start and its end (ConvertLayout
does this; Liu et al., "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019).

The size of a block divides the channels and takes the fewest vectors: 24 channels are one block, of
one vector of 16 and one of 8. The result may have another block than the data. Programs whose
channels are last (``NHWC``) get the same blocks.

Some convolutions are left alone, or blocked in part:

- Fewer than four input channels (the colours of an image) are not blocked.
- A depthwise kernel has one axis of channels, and so one kind of block.
- Other grouped convolutions are blocked only if no block crosses a group, and if the channels of a
  group fill half a vector: else vectors of pixels are as good, unless strides leave gaps between
  the pixels.
- The only convolution of a function stays as it is if its pixels or channels make vectors that are
  as good, since the conversions before and after it would serve nothing else. (Pixels are not as
  good for integers, whose instructions need channels side by side.)
- A convolution of an image of one pixel (a gate of squeeze and excitation) is blocked if others
  are, but is no reason to convert the image that it is multiplied with.
"""

from __future__ import annotations

from typing import Final

from weft.ir.functor import collect
from weft.relax.expr import Call, Function
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import CONVOLUTION_OPERATORS
from weft.relax.op.nn.geometry import Geometry, geometry_of
from weft.relax.transform.layout.convert_layout import with_layouts
from weft.relax.transform.passes import define_function_pass
from weft.target.machine import vector_count

WIDTH: Final = 16
"""The elements of a vector for which blocks are made if nothing else is said."""
SMALLEST_BLOCK: Final = 4
"""The smallest block, and the step from one size of block to the next."""
_WIDEST: Final = 4
"""The most vectors in a block."""
_PIXELS: Final = 8
"""How many vectors of pixels an image must fill for the last one, if cut off, not to matter."""
_WINDOW: Final = 5
"""The largest depthwise window, in pixels across, whose unaligned loads cost little."""


def block_channels(func: Function, width: int = WIDTH) -> Function:
    """The function with channels of convolutions in blocks for vectors of ``width``."""
    convolutions = [
        call
        for call in collect(func, Call)
        if call.op in CONVOLUTION_OPERATORS and not _has_one_pixel(call)
    ]
    if not convolutions or (len(convolutions) == 1 and _makes_vectors(convolutions[0], width)):
        return func
    return with_layouts(func, lambda call: blocked_layouts(call, width))


BlockChannels = define_function_pass("BlockChannels", block_channels)


def _has_one_pixel(call: Call) -> bool:
    """Whether images have one pixel, so that channels are contiguous in every plain layout."""
    sizes = geometry_of(call)
    return sizes is not None and not sizes.is_blocked and set(sizes.image) == {1}


def _makes_vectors(call: Call, width: int) -> bool:
    """Whether the program's own layout is as good for vectors as blocks of channels are."""
    sizes = geometry_of(call)
    if sizes is None or sizes.is_blocked:
        return False
    is_float = str(call.attrs["out_dtype"]) != "int32"
    return _has_channels_side_by_side(sizes) or _has_vectors_of_pixels(sizes, is_float, width)


def _has_channels_side_by_side(sizes: Geometry) -> bool:
    """Whether channels are last in data and result, and no algorithm needs them in blocks.

    Winograd's algorithm needs blocks; it computes windows of stride one that sum over channels.
    """
    data, _, out = sizes.layouts.names
    if {data[-1], out[-1]} != {"C"}:
        return False
    is_summed = sizes.is_dense and sizes.steps == (1, 1)
    return sizes.is_pointwise or not is_summed


def _has_vectors_of_pixels(sizes: Geometry, is_float: bool, width: int) -> bool:
    """Whether vectors of pixels are as good as blocks of channels.

    They are for windows of 1x1, to which the image is one long row (JoinPixels), if that has eight
    vectors or more; and for depthwise windows of at most 5x5, if a row of results fills most of a
    vector.
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
    """Whether a row of ``row`` pixels fills three quarters of a vector, or of half a vector.

    >>> _fills(7, 16), _fills(9, 16), _fills(12, 16), _fills(17, 16)
    (True, False, True, True)
    """
    lanes = min(1 << (row - 1).bit_length(), width)
    return lanes * 2 >= width and row * 4 >= lanes * 3


def blocked_layouts(call: Call, width: int) -> tuple[str, str, str] | None:
    """The layouts of data, kernel and result of a convolution; None if nothing is to be blocked."""
    sizes = geometry_of(call) if call.op in CONVOLUTION_OPERATORS else None
    if sizes is None or sizes.is_blocked:
        return None
    blocks = blocks_of(sizes, width)
    if blocks is None:
        return None
    (into, out), space = blocks, sizes.letters
    result = f"NC{space}{out}c"
    if sizes.is_depthwise:
        return f"NC{space}{into}c", f"OI{space}{out}o", result
    if into == 1:
        return sizes.layouts.data.name, f"OI{space}{out}o", result
    return f"NC{space}{into}c", f"OI{space}{into}i{out}o", result


def blocks_of(sizes: Geometry, width: int = WIDTH) -> tuple[int, int] | None:
    """The sizes of the blocks of the data's channels (1: none) and of the result's, if known."""
    channels, filters = constant_value(sizes.channels), constant_value(sizes.filters)
    if channels is None or filters is None:
        return None
    is_strided = any(step != 1 for step in sizes.steps)
    return _blocks(channels, filters, sizes.groups, width, is_strided=is_strided)


def _blocks(
    channels: int, filters: int, groups: int, width: int, *, is_strided: bool
) -> tuple[int, int] | None:
    """The sizes of the blocks of the data's channels (1: none) and of the result's."""
    into, out = block_of(channels, width), block_of(filters, width)
    if out == 1:
        return None
    if groups == 1:
        return (into, out) if into > 1 or channels < SMALLEST_BLOCK else None
    if channels == groups == filters:
        return into, out
    if channels // groups % into or filters // groups % out:
        into, out = block_of(channels // groups, width), block_of(filters // groups, width)
        if min(into, out) < (SMALLEST_BLOCK if is_strided else width // 2):
            return None
    return (into, out) if into > 1 else None


def block_of(channels: int, width: int) -> int:
    """The size of the blocks that ``channels`` are cut into, or 1 if blocks are not worth it.

    A block has up to four vectors of ``width``, the last of which may be shorter. The best size
    takes the fewest vectors for all channels (24 are a vector of 16 and one of 8, not three of 8);
    among equally good ones it is the smallest.

    >>> block_of(64, 16), block_of(24, 16), block_of(1000, 16), block_of(3, 16)
    (16, 24, 40, 1)
    """
    sizes = [
        size
        for size in range(SMALLEST_BLOCK, _WIDEST * width + 1, SMALLEST_BLOCK)
        if channels % size == 0
    ]
    return min(sizes, key=lambda size: (vector_count(size, width) / size, size), default=1)
