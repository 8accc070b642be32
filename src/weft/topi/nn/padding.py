"""Padding with a constant, by reflection, with the edge, circular."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.support.errors import IRValueError
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Extents, Point, as_sequence, compute_ax, is_const
from weft.topi.simplify import simplified

Amounts = tuple[PrimExpr, PrimExpr]
"""The number of elements added before and after an axis."""


def pad(
    data: Tensor,
    pad_before: Extents,
    pad_after: Extents | None = None,
    pad_value: PrimExpr | float = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """``data`` with ``pad_before[i]`` values before and ``pad_after[i]`` after axis ``i``.

    ``pad_after`` is ``pad_before`` if left out.
    """
    before, after = _both(data, pad_before, pad_after, "pad")
    value = (
        op.cast(data.dtype, pad_value)
        if isinstance(pad_value, PrimExpr)
        else op.const(pad_value, data.dtype)
    )
    shape = _padded_shape(data, before, after)

    def element(*indices: PrimExpr) -> PrimExpr:
        inside: list[PrimExpr] = []
        source: list[PrimExpr] = []
        for index, extent, low, high in zip(indices, data.shape, before, after, strict=True):
            if is_const(low, 0) and is_const(high, 0):
                source.append(index)
                continue
            source.append(op.subtract(index, low))
            inside.append(op.less_equal(low, index))
            inside.append(op.less(index, simplified(op.add(extent, low))))
        value_inside = data(*source)
        return op.if_then_else(op.all(*inside), value_inside, value) if inside else value_inside

    names = [f"i{i}" for i in range(data.ndim)]
    return compute(shape, element, name, tag.INJECTIVE, attrs, names)


def _both(
    data: Tensor, before: Extents, after: Extents | None, name: str
) -> tuple[list[PrimExpr], list[PrimExpr]]:
    low = [as_prim_expr(item) for item in as_sequence(before)]
    high = low if after is None or after == () else [as_prim_expr(i) for i in as_sequence(after)]
    for amounts in (low, high):
        if len(amounts) != data.ndim:
            raise IRValueError(
                f"{name}: got {len(amounts)} amounts for a {data.ndim}-dimensional tensor"
            )
    return low, high


def _padded_shape(data: Tensor, before: list[PrimExpr], after: list[PrimExpr]) -> list[PrimExpr]:
    amounts = zip(data.shape, before, after, strict=True)
    return [simplified(extent + low + high) for extent, low, high in amounts]


def mirror_pad(
    data: Tensor,
    pad_before: Extents,
    pad_after: Extents | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """Padding by mirror images; SYMMETRIC repeats the edge, REFLECT does not."""
    if mode.upper() not in ("SYMMETRIC", "REFLECT"):
        raise IRValueError(f"mirror_pad: expected mode SYMMETRIC or REFLECT, got {mode!r}")
    before, after = _both(data, pad_before, pad_after, "mirror_pad")
    shift = 0 if mode.upper() == "SYMMETRIC" else 1

    def source(index: PrimExpr, extent: PrimExpr, amounts: Amounts) -> PrimExpr:
        low, high = amounts
        inner = op.subtract(index, low)
        if not is_const(high, 0):
            mirrored = op.subtract(2 * extent - 1 - shift, inner)
            inner = op.if_then_else(op.less_equal(extent, inner), mirrored, inner)
        if is_const(low, 0):
            return inner
        return op.if_then_else(op.less(index, low), op.subtract(low - 1 + shift, index), inner)

    return _remapped(data, before, after, source, name)


def reflect_pad(
    data: Tensor,
    pad_before: Extents,
    pad_after: Extents | None = None,
    name: str = "ReflectPadInput",
) -> Tensor:
    """Padding by reflection, without repeating the edge (numpy's "reflect")."""
    return mirror_pad(data, pad_before, pad_after, "REFLECT", name)


def replicate_pad(
    data: Tensor,
    pad_before: Extents,
    pad_after: Extents | None = None,
    name: str = "ReplicatePadInput",
) -> Tensor:
    """Padding with the edge's element (numpy's "edge")."""
    before, after = _both(data, pad_before, pad_after, "replicate_pad")

    def source(index: PrimExpr, extent: PrimExpr, amounts: Amounts) -> PrimExpr:
        inner = op.subtract(index, amounts[0])
        return op.minimum(op.maximum(inner, op.const(0, inner.dtype)), extent - 1)

    return _remapped(data, before, after, source, name)


def circular_pad(
    data: Tensor,
    pad_before: Extents,
    pad_after: Extents | None = None,
    name: str = "CircularPadInput",
) -> Tensor:
    """Padding with the elements of the other end (numpy's "wrap")."""
    before, after = _both(data, pad_before, pad_after, "circular_pad")

    def source(index: PrimExpr, extent: PrimExpr, amounts: Amounts) -> PrimExpr:
        return op.floormod(op.subtract(index, amounts[0]), extent)

    return _remapped(data, before, after, source, name)


def _remapped(
    data: Tensor,
    before: Point,
    after: Point,
    source: Callable[[PrimExpr, PrimExpr, Amounts], PrimExpr],
    name: str,
) -> Tensor:
    def element(*indices: PrimExpr) -> PrimExpr:
        point = []
        for i, index in enumerate(indices):
            untouched = is_const(before[i], 0) and is_const(after[i], 0)
            amounts = (before[i], after[i])
            point.append(index if untouched else source(index, data.shape[i], amounts))
        return data(*point)

    shape = _padded_shape(data, list(before), list(after))
    return compute_ax(shape, element, name, tag=tag.INJECTIVE)
