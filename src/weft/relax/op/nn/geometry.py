"""The geometry of a convolution, whatever its layouts: named sizes, and the windows of each axis.

``geometry_of`` computes it from a call. Struct-info rules, requirements, lowering and the passes
that choose layouts and algorithms use this object and do not read the call's attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.ir.expr import Extent
from weft.relax.expr import Call
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.layout import Layout, parse_layout
from weft.support.errors import IRValueError
from weft.tir.op import ceildiv, floordiv

SPATIAL: Final = {1: "W", 2: "HW", 3: "DHW"}
"""Number of spatial axes -> their letters in a layout."""


class Layouts(NamedTuple):
    """The layouts of a convolution's data, kernel and result."""

    data: Layout
    kernel: Layout
    out: Layout

    @property
    def names(self) -> tuple[str, str, str]:
        """The names as the call has them: ``("NCHW", "OIHW", "NCHW")``."""
        return self.data.name, self.kernel.name, self.out.name


@dataclass(frozen=True)
class Window:
    """The windows along one spatial axis."""

    extent: Extent
    """The extent of the data."""
    size: Extent
    """The extent of the kernel."""
    stride: Extent
    dilation: Extent
    before: Extent
    """Padding before the data."""
    after: Extent
    """Padding after the data."""

    @property
    def reach(self) -> Extent:
        """The span of a window: the distance from its first to its last element, plus 1."""
        return simplified((self.size - 1) * self.dilation + 1)

    @property
    def padded(self) -> Extent:
        """The extent of the data with its padding."""
        return self.extent + self.before + self.after

    @property
    def count(self) -> Extent:
        """The number of windows."""
        return simplified(floordiv(self.padded - self.reach, self.stride) + 1)

    @property
    def count_up(self) -> Extent:
        """The number of windows, with one for remaining pixels that do not fill a window."""
        return simplified(ceildiv(self.padded - self.reach, self.stride) + 1)

    @property
    def is_one_pixel(self) -> bool:
        """Whether the kernel has extent 1, stride 1 and no padding: one window for each pixel."""
        numbers = (self.size, self.stride, self.before, self.after)
        return [constant_value(number) for number in numbers] == [1, 1, 0, 0]


@dataclass(frozen=True)
class Geometry:
    """The sizes of one convolution; extents may be symbolic.

    >>> import weft
    >>> from weft import relax
    >>> x, w = [relax.Var("x", relax.TensorStructInfo(shape, "float32")) for shape in
    ...         ((1, 8, 8, 32), (3, 3, 32, 64))]
    >>> call = relax.op.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="HWIO")
    >>> sizes = geometry_of(relax.BlockBuilder().normalize(call))
    >>> int(sizes.channels), int(sizes.filters), [int(axis.count) for axis in sizes.space]
    (32, 64, [8, 8])
    """

    layouts: Layouts
    batch: Extent
    channels: Extent
    """The channels of the data."""
    filters: Extent
    """The kernel's axis O: output channels (of one group, if the convolution is transposed)."""
    depth: Extent
    """The kernel's axis I: the channels that each filter sums over."""
    space: tuple[Window, ...]
    groups: int

    @property
    def letters(self) -> str:
        """The letters of the spatial axes: ``HW``."""
        return SPATIAL[len(self.space)]

    @property
    def kernel(self) -> tuple[int | None, ...]:
        """The extents of the kernel, None for symbolic ones."""
        return tuple([constant_value(window.size) for window in self.space])

    @property
    def image(self) -> tuple[int | None, ...]:
        """The extents of the data's spatial axes, None for symbolic ones."""
        return tuple([constant_value(window.extent) for window in self.space])

    @property
    def padding(self) -> tuple[int | None, ...]:
        """The padding before each axis, then after each; None for a symbolic one."""
        sides = [*[w.before for w in self.space], *[w.after for w in self.space]]
        return tuple([constant_value(side) for side in sides])

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The strides."""
        return tuple([constant_value(window.stride) for window in self.space])

    @property
    def is_dilated(self) -> bool:
        """Whether a dilation is not known to be 1."""
        return any(constant_value(window.dilation) != 1 for window in self.space)

    @property
    def is_dense(self) -> bool:
        """Whether each filter sums over all channels (no groups)."""
        return self.groups == 1

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has exactly one filter of its own."""
        numbers = [constant_value(extent) for extent in (self.channels, self.filters)]
        return self.groups > 1 and numbers == [self.groups] * 2

    @property
    def is_pointwise(self) -> bool:
        """Whether the kernel is 1 x 1."""
        return all(size == 1 for size in self.kernel)

    @property
    def is_slid(self) -> bool:
        """Whether all strides and dilations are 1."""
        return all(step == 1 for step in self.steps) and not self.is_dilated

    @property
    def is_blocked(self) -> bool:
        """Whether the layout of data or kernel splits an axis, as NCHW16c does."""
        return any(factor for layout in self.layouts[:2] for _, factor in layout.axes)

    @property
    def blocks(self) -> tuple[int, int] | None:
        """(a, b) if the layouts are NCHW{a}c, OIHW{a}i{b}o and NCHW{b}c, else None."""
        (_, of_data), (_, of_result) = self.layouts.data.axes[-1], self.layouts.out.axes[-1]
        names = (
            f"NC{self.letters}{of_data}c",
            f"OI{self.letters}{of_data}i{of_result}o",
            f"NC{self.letters}{of_result}c",
        )
        return (of_data, of_result) if self.layouts.names == names else None


def layouts_of(call: Call) -> Layouts:
    """The layouts of a convolution; IRValueError if one has wrong axes."""
    attrs, name = call.attrs, call.op.name
    counts = [len(attrs["strides"]), len(attrs["dilation"]), len(attrs["padding"]) / 2]
    if len({*counts}) != 1 or counts[0] not in SPATIAL:
        raise IRValueError(
            f"{name}: expected strides and dilation for 1 to 3 axes, and padding before and after "
            f"each, got {attrs['strides']}, {attrs['dilation']} and {attrs['padding']}"
        )
    letters = SPATIAL[len(attrs["strides"])]
    kernel = "IO" if "output_padding" in attrs else "OI"
    orders = (("data_layout", "NC"), ("kernel_layout", kernel), ("out_layout", "NC"))
    return Layouts(
        *[
            parse_layout(attrs[attribute], order + letters, f"{name}: {attribute}")
            for attribute, order in orders
        ]
    )


def geometry_of(call: Call) -> Geometry | None:
    """The geometry of a (transposed) convolution; None if a shape is not known."""
    layouts = layouts_of(call)
    data, kernel = [tensor_dims(arg.struct_info) for arg in call.args[:2]]
    return None if data is None or kernel is None else _geometry(call, layouts, data, kernel)


def _geometry(
    call: Call, layouts: Layouts, data: Sequence[Extent], kernel: Sequence[Extent]
) -> Geometry:
    attrs = call.attrs
    letters = SPATIAL[len(attrs["strides"])]
    batch, channels, *image = layouts.data.to_canonical(data, f"NC{letters}")
    filters, depth, *sizes = layouts.kernel.to_canonical(kernel, f"OI{letters}")
    windows = windows_of(call, image, sizes)
    return Geometry(layouts, batch, channels, filters, depth, windows, int(attrs["groups"]))


def windows_of(
    call: Call, extents: Sequence[Extent], sizes: Sequence[Extent]
) -> tuple[Window, ...]:
    """The windows of a convolution or a pooling call over data of these extents."""
    attrs, rank = call.attrs, len(extents)
    padding = attrs["padding"]
    axes = zip(
        extents,
        sizes,
        attrs["strides"],
        attrs["dilation"],
        padding[:rank],
        padding[rank:],
        strict=True,
    )
    return tuple([Window(*axis) for axis in axes])
