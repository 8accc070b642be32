"""What a convolution computes, whatever its layouts: sizes by role, and the windows of each axis.

``geometry_of`` reads a call; struct info, requirements, lowering and the passes over layouts and
algorithms ask the object that it gives, and no attribute of the call.
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
"""How many axes of space -> their letters in a layout."""


class Layouts(NamedTuple):
    """The layouts of a convolution's data, kernel and result."""

    data: Layout
    kernel: Layout
    out: Layout

    @property
    def names(self) -> tuple[str, str, str]:
        """As the call names them: ``("NCHW", "OIHW", "NCHW")``."""
        return self.data.name, self.kernel.name, self.out.name


@dataclass(frozen=True)
class Window:
    """The windows along one axis of space."""

    extent: Extent
    """Elements of the data."""
    size: Extent
    """Elements of the kernel."""
    stride: Extent
    dilation: Extent
    before: Extent
    """Padding before the data."""
    after: Extent
    """Padding after the data."""

    @property
    def reach(self) -> Extent:
        """How many elements a window reaches over."""
        return simplified((self.size - 1) * self.dilation + 1)

    @property
    def padded(self) -> Extent:
        """Elements of the data and its padding."""
        return self.extent + self.before + self.after

    @property
    def count(self) -> Extent:
        """How many windows there are."""
        return simplified(floordiv(self.padded - self.reach, self.stride) + 1)

    @property
    def count_up(self) -> Extent:
        """How many windows there are, with one for pixels that fill none."""
        return simplified(ceildiv(self.padded - self.reach, self.stride) + 1)

    @property
    def is_one_pixel(self) -> bool:
        """Whether each window is one pixel, and each pixel has one: no stride, no padding."""
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
    """Of the data."""
    filters: Extent
    """The kernel's axis O: results of a group, if the convolution is transposed."""
    depth: Extent
    """The kernel's axis I: channels that a filter sums."""
    space: tuple[Window, ...]
    groups: int

    @property
    def letters(self) -> str:
        """The axes of space."""
        return SPATIAL[len(self.space)]

    @property
    def kernel(self) -> tuple[int | None, ...]:
        """The extents of a window, None for symbolic ones."""
        return tuple([constant_value(window.size) for window in self.space])

    @property
    def image(self) -> tuple[int | None, ...]:
        """The extents of the data's axes of space, None for symbolic ones."""
        return tuple([constant_value(window.extent) for window in self.space])

    @property
    def padding(self) -> tuple[int | None, ...]:
        """Padding before each axis, then after each; None where it is symbolic."""
        sides = [*[w.before for w in self.space], *[w.after for w in self.space]]
        return tuple([constant_value(side) for side in sides])

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The strides."""
        return tuple([constant_value(window.stride) for window in self.space])

    @property
    def is_dilated(self) -> bool:
        """Whether a window leaves out pixels, as far as is known."""
        return any(constant_value(window.dilation) != 1 for window in self.space)

    @property
    def is_dense(self) -> bool:
        """Whether each filter sums all channels."""
        return self.groups == 1

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a filter of its own, and one."""
        numbers = [constant_value(extent) for extent in (self.channels, self.filters)]
        return self.groups > 1 and numbers == [self.groups] * 2

    @property
    def is_pointwise(self) -> bool:
        """Whether windows are one pixel."""
        return all(size == 1 for size in self.kernel)

    @property
    def is_slid(self) -> bool:
        """Whether windows move by one pixel, and see neighbours: stride and dilation are one."""
        return all(step == 1 for step in self.steps) and not self.is_dilated

    @property
    def is_blocked(self) -> bool:
        """Whether data or kernel have an axis in blocks."""
        return any(factor for layout in self.layouts[:2] for _, factor in layout.axes)

    @property
    def blocks(self) -> tuple[int, int] | None:
        """The blocks a and b of the layouts NCHW{a}c, OIHW{a}i{b}o, NCHW{b}c; None of others."""
        (_, of_data), (_, of_result) = self.layouts.data.axes[-1], self.layouts.out.axes[-1]
        names = (f"NC{self.letters}{of_data}c", f"OI{self.letters}{of_data}i{of_result}o",
                 f"NC{self.letters}{of_result}c")  # fmt: skip
        return (of_data, of_result) if self.layouts.names == names else None


def layouts_of(call: Call) -> Layouts:
    """The layouts that a convolution names; IRValueError where one has other axes."""
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
    return Layouts(*[
        parse_layout(attrs[attribute], order + letters, f"{name}: {attribute}")
        for attribute, order in orders
    ])  # fmt: skip


def geometry_of(call: Call) -> Geometry | None:
    """The geometry of a call of a convolution, or of a transposed one; None of unknown shapes."""
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
    """The windows of a convolution or a pool over data of ``extents``, by the call's attributes."""
    attrs, rank = call.attrs, len(extents)
    padding = attrs["padding"]
    axes = zip(
        extents, sizes, attrs["strides"], attrs["dilation"], padding[:rank], padding[rank:],
        strict=True,
    )  # fmt: skip
    return tuple([Window(*axis) for axis in axes])
