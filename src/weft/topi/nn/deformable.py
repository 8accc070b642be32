"""Windows of images whose taps are moved by offsets in a tensor (Dai et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent, PrimExpr
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Point, compute_ax
from weft.topi.moments import wide


def deform_im2col(
    data: Tensor,
    offset: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    offset_groups: int = 1,
) -> Tensor:
    """(batch, channels, kernel rows, kernel columns, rows, columns): windows, read bilinearly.

    ``offset`` is (batch, 2 * offset groups * taps, rows, columns): how far each tap is moved down,
    then right. All channels of a group have the same offsets. Outside of the image are zeros.
    """
    taps = kernel[0] * kernel[1]
    per_group = op.floordiv(data.shape[1], offset_groups)
    shape: list[Extent] = [*data.shape[:2], *kernel, *offset.shape[2:]]
    kind = wide(data.dtype)

    def element(*point: PrimExpr) -> PrimExpr:
        n, c, inner, outer = point[0], point[1], point[2:4], point[4:]
        tap = op.floordiv(c, per_group) * taps + inner[0] * kernel[1] + inner[1]
        place = [
            op.cast(kind, outer[a] * stride[a] + inner[a] * dilation[a] - padding[a])
            + op.cast(kind, offset(n, 2 * tap + a, *outer))
            for a in range(2)
        ]
        return op.cast(data.dtype, _bilinear(data, (n, c), place))

    return compute_ax(shape, element, "T_deform_im2col", tag=tag.INJECTIVE)


def _bilinear(data: Tensor, plane: tuple[PrimExpr, PrimExpr], place: Point) -> PrimExpr:
    """The value at a place in a plane, interpolated from four elements; zeros are outside."""
    kind, terms = place[0].dtype, []
    low = [op.floor(value) for value in place]
    for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
        at = [low[axis] + op.const(corner[axis], kind) for axis in range(2)]
        shares = [op.const(1, kind) - op.abs(place[axis] - at[axis]) for axis in range(2)]
        index = [op.cast("int64", value) for value in at]
        inside = [
            test
            for axis in range(2)
            for test in (op.less_equal(0, index[axis]), op.less(index[axis], data.shape[2 + axis]))
        ]
        value = op.if_then_else(op.all(*inside), data(*plane, *index), op.const(0, data.dtype))
        terms.append(shares[0] * shares[1] * op.cast(kind, value))
    return op.add_n(*terms)
