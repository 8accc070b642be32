"""Convolutions of data and kernels whose channels are split into blocks (``NCHW16c``).

A layout names its axes in order; in ``NCHW16c`` the axis ``C`` counts blocks of 16 channels, and
``16c`` is the channel in a block. If data and kernel split the input channels in the same way, the
sum runs over blocks and over channels in a block, without division: the form of Liu et al.,
"Optimizing CNN Model Inference on CPUs", USENIX ATC 2019, section 3.1. For other pairs of layouts
the indices of a channel are computed by division.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import compute, reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.expr import IterVar
from weft.topi.extents import (
    Extents,
    Point,
    const_int,
    is_const,
    may_be_equal,
    shape_text,
)
from weft.topi.moments import wide
from weft.topi.nn.convolution import SPATIAL, check_channels, rounded, windows_of
from weft.topi.nn.padding import pad
from weft.topi.simplify import simplified

_AXIS = re.compile(r"(\d*)([A-Za-z])")
Axes = Sequence[tuple[str, int]]
"""The axes of a layout: ("C", 0) for a whole axis or a count of blocks, ("C", 16) for ``16c``."""


@dataclass(frozen=True)
class _Split:
    """An index into an axis, as the number of a block and the place in it."""

    outer: PrimExpr
    inner: PrimExpr
    factor: int


Index = PrimExpr | _Split


def blocked_axes(layout: str, letters: str, what: str) -> Axes:
    """The axes of a layout that has each of the letters and may split N, C, I and O once.

    Raises IRValueError for other layouts.
    """
    axes = [(name.upper(), int(size or 0)) for size, name in _AXIS.findall(layout)]
    whole = sorted(letter for letter, factor in axes if not factor)
    parts = [letter for letter, factor in axes if factor]
    is_read = "".join(f"{f}{a.lower()}" if f else a for a, f in axes) == layout
    if not is_read or whole != sorted(letters) or len(set(parts)) != len(parts):
        raise IRValueError(f"{what}: expected a layout of the letters {letters}, got {layout!r}")
    if set(parts) - set("NCOI"):
        raise IRValueError(f"{what}: only channels and the batch can be split, got {layout!r}")
    return axes


def _factor(axes: Axes, letter: str) -> int:
    return max(factor for name, factor in axes if name == letter)


def _extents(tensor: Tensor, axes: Axes, what: str) -> dict[str, Extent]:
    """The whole extent of each letter."""
    if tensor.ndim != len(axes):
        raise IRValueError(f"{what}: expected {len(axes)} dimensions, got {tensor.ndim}")
    extents: dict[str, Extent] = {}
    for (letter, factor), extent in zip(axes, tensor.shape, strict=True):
        if factor and not may_be_equal(extent, factor):
            raise IRValueError(
                f"{what}: expected an extent of {factor} for the axis {factor}{letter.lower()}, "
                f"got {shape_text(tensor.shape)}"
            )
        extents[letter] = extents.get(letter, 1) * (factor or extent)
    return {letter: simplified(extent) for letter, extent in extents.items()}


def _shape(extents: Mapping[str, Extent], axes: Axes, what: str) -> list[Extent]:
    """The dimensions of a tensor in a layout."""
    dimensions: list[Extent] = []
    for letter, part in axes:
        factor = _factor(axes, letter)
        if factor and not part and is_const(simplified(op.floormod(extents[letter], factor)), 0):
            dimensions.append(simplified(op.floordiv(extents[letter], factor)))
        elif factor and not part:
            raise IRValueError(
                f"{what}: {extents[letter]} is not known to be a multiple of the block {factor} of "
                f"axis {letter}"
            )
        else:
            dimensions.append(part or extents[letter])
    return dimensions


def _indices(values: Mapping[str, Index], axes: Axes) -> list[PrimExpr]:
    """The indices into a tensor of a layout, from the index of each letter."""
    indices = []
    for letter, part in axes:
        value, factor = values[letter], _factor(axes, letter)
        if isinstance(value, _Split) and value.factor == factor:
            indices.append(value.inner if part else value.outer)
            continue
        index = _whole(value)
        if factor:
            index = op.floormod(index, factor) if part else op.floordiv(index, factor)
        indices.append(index)
    return indices


def _values(point: Point, axes: Axes) -> dict[str, Index]:
    """The index of each letter, from the indices into a tensor of a layout."""
    at = dict(zip(axes, point, strict=True))
    return {
        letter: _Split(at[letter, 0], at[letter, factor], factor) if factor else at[letter, 0]
        for letter, factor in [(name, _factor(axes, name)) for name, part in axes if not part]
    }


def _axes_of(layouts: tuple[str, str, str]) -> tuple[str, list[Axes]]:
    """The letters of the spatial axes, and the axes of data, kernel and result."""
    letters = next(
        names for names in SPATIAL.values() if set(names) == set(re.findall("[DHW]", layouts[0]))
    )
    roles = zip(layouts, ("NC", "OI", "NC"), ("data", "kernel", "result"), strict=True)
    return letters, [
        blocked_axes(layout, names + letters, f"conv: {role}") for layout, names, role in roles
    ]


def conv_blocked(
    data: Tensor,
    kernel: Tensor,
    strides: Extents,
    padding: Extents,
    dilation: Extents,
    groups: int,
    layouts: tuple[str, str, str],
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of data and kernel in layouts that may be blocked: (data, kernel, result).

    Data ``NCHW4c`` (n, c / 4, h, w, 4) and a kernel ``OIHW4i8o`` (o / 8, i / 4, kh, kw, 4, 8) give
    a result ``NCHW8c`` (n, o / 8, h', w', 8). IRValueError if blocks do not divide the channels.
    """
    letters, (axes, kernel_axes, out_axes) = _axes_of(layouts)
    sizes = _extents(data, axes, "conv: data")
    weights = _extents(kernel, kernel_axes, "conv: kernel")
    count = const_int(groups, "conv: groups")
    check_channels((data, kernel), sizes["C"], weights["I"], weights["O"], count)
    extents, kernel_extents = [[whole[a] for a in letters] for whole in (sizes, weights)]
    windows = windows_of(extents, kernel_extents, strides, padding, dilation, "conv")
    result: dict[str, Extent] = {"N": sizes["N"], "C": weights["O"]}
    result |= zip(letters, windows.counts, strict=True)
    lows, highs = [
        [amounts[letters.index(a)] if a in letters else 0 for a, _ in axes]
        for amounts in (windows.before, windows.after)
    ]
    padded = pad(data, lows, highs, name="pad_temp")
    taps = [reduce_axis((0, weights[a]), name=n) for a, n in zip(letters, "yxz", strict=False)]
    channel, sums = _input_channel(weights["I"], _factor(kernel_axes, "I"))
    dtype = DataType(out_dtype) if out_dtype else data.dtype
    kind = wide(dtype)

    def element(*point: PrimExpr) -> PrimExpr:
        values = _values(point, out_axes)
        source = {"N": values["N"], "C": channel}
        if count > 1:
            group = op.floordiv(_whole(values["C"]), op.floordiv(result["C"], count))
            source["C"] = group * weights["I"] + _whole(channel)
        weight = {"O": values["C"], "I": channel}
        inner = [tap.var for tap in taps]
        places = windows.places([_whole(values[a]) for a in letters], inner)
        source |= zip(letters, places, strict=True)
        weight |= zip(letters, inner, strict=True)
        factors = padded(*_indices(source, axes)), kernel(*_indices(weight, kernel_axes))
        lhs, rhs = (op.cast(kind, factor) for factor in factors)
        return te_reduction.sum(lhs * rhs, axis=[*sums, *taps])

    name = f"conv{len(letters)}d_{re.sub('[0-9]', '', layouts[0])}"
    whole = compute(_shape(result, out_axes, "conv: result"), element, name=name, tag=name)
    return rounded(whole, dtype)


def _whole(index: Index) -> PrimExpr:
    """The index into the whole axis."""
    return index.outer * index.factor + index.inner if isinstance(index, _Split) else index


def _input_channel(extent: Extent, factor: int) -> tuple[Index, list[IterVar]]:
    """The index of an input channel, and the axes over which its sum runs."""
    if not factor:
        whole = reduce_axis((0, extent), name="rc")
        return whole.var, [whole]
    outer = reduce_axis((0, simplified(op.floordiv(extent, factor))), name="rc_outer")
    inner = reduce_axis((0, factor), name="rc_inner")
    return _Split(outer.var, inner.var, factor), [outer, inner]


def conv2d_NCHWc(  # noqa: N802 - as TVM
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents,
    dilation: Extents,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> Tensor:
    """The convolution of data (n, c / a, h, w, a) and a kernel (o / b, c / a, kh, kw, a, b).

    ``layout`` and ``out_layout`` name the blocks (``"NCHW16c"``); the kernel's are its last axes.
    """
    inner, outer = (const_int(extent, "conv2d_NCHWc: block") for extent in kernel.shape[-2:])
    layouts = (layout, f"OIHW{inner}i{outer}o", out_layout)
    return conv_blocked(data, kernel, stride, padding, dilation, 1, layouts, out_dtype)
