"""Padding: the ``pad`` operator, and how attributes of windows are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft import topi
from weft.ir.expr import Extent
from weft.ir.node import Array
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.definition import Ints, Replacements, as_ints, operator
from weft.relax.op.infer import dims_of, fail, result, tensor
from weft.relax.op.reference.nn import padding as reference
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir.op import const as tir_const


def each(value: Ints, rank: int, name: str) -> Array[Extent]:
    """One int for each spatial axis; a single value is repeated."""
    values = as_ints(value)
    if len(values) == 1:
        return Array([values[0]] * rank)
    if len(values) != rank:
        raise IRValueError(f"{name}: expected 1 or {rank} values, got {len(values)}: {values}")
    return values


def both_sides(value: Ints, rank: int) -> Array[Extent]:
    """The padding before every axis, then after; from one value, one for each axis, or all."""
    values = as_ints(value)
    if len(values) == 1:
        return Array([values[0]] * (2 * rank))
    if len(values) == rank:
        return Array([*values, *values])
    if len(values) != 2 * rank:
        raise IRValueError(
            f"padding: expected 1, {rank} or {2 * rank} values, got {len(values)}: {values}"
        )
    return values


def check_window(
    call: Call, what: str, sizes: tuple[Extent, Extent, Extent], spare: Extent = 0
) -> None:
    """Raise if a window is known not to fit; ``sizes``: padded data, window, number of windows.

    The last window may reach over ``spare`` elements more than there are (``ceil_mode``).
    Empty data gives an empty result instead, unless the number of windows is negative. Otherwise a
    graph with a symbolic extent would be accepted, and refused once the extent is known to be 0.
    """
    padded, reach, steps = [simplified(size) for size in sizes]
    room = constant_value(simplified(padded + spare - reach))
    empty = constant_value(padded) == 0 and (constant_value(steps) or 0) >= 0
    if room is not None and room < 0 and not empty:
        fail(call, f"{what} reaches over {reach} elements, the padded data has {padded}")


MODES: Final = ("constant", "reflect", "replicate", "circular")


def infer_pad(call: Call) -> TensorStructInfo:
    """The extents plus their padding; ``pad_width`` has (before, after) for every axis."""
    info = tensor(call, 0)
    widths, dims = call.attrs["pad_width"], dims_of(info)
    if info.ndim != -1 and len(widths) != 2 * info.ndim:
        fail(
            call,
            f"pad_width: expected {2 * info.ndim} numbers for {info.ndim} dimensions, got "
            f"{len(widths)}",
        )
    if call.attrs["pad_mode"] not in MODES:
        fail(call, f"pad_mode: expected {', '.join(MODES)}, got {call.attrs['pad_mode']!r}")
    if dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    if call.attrs["pad_mode"] == "reflect":
        for place, width in enumerate(widths):
            extent = constant_value(dims[place // 2])
            if extent is not None and width >= extent:
                fail(
                    call,
                    f"pad_width: axis {place // 2}: reflection takes less than the {extent} "
                    f"elements of the axis, got {width}",
                )
    padded = [
        simplified(dim + widths[2 * axis] + widths[2 * axis + 1]) for axis, dim in enumerate(dims)
    ]
    return result(padded, info.dtype, vdevice=info.vdevice)


_MODES: Final = {
    "reflect": topi.nn.reflect_pad, "replicate": topi.nn.replicate_pad,
    "circular": topi.nn.circular_pad,
}  # fmt: skip


def _padded(data: Tensor, widths: list[int], mode: str, value: float) -> Tensor:
    before, after = widths[0::2], widths[1::2]
    if mode in _MODES:
        return _MODES[mode](data, before, after)
    return topi.nn.pad(data, before, after, tir_const(value, str(data.dtype)))


@operator("relax.nn.pad", infer_pad, te=_padded, kernel="pad", numpy=reference.pad)
def pad(
    data: Expr, pad_width: Ints, pad_mode: str = "constant", pad_value: float = 0.0
) -> Replacements:
    """The data with elements added before and after every axis.

    ``pad_mode`` is constant, reflect, replicate (or edge) or circular.
    """
    flat: list[object] = []
    for item in pad_width if isinstance(pad_width, Sequence) else [pad_width]:
        flat.extend(item if isinstance(item, list | tuple) else [item])
    return {"pad_width": flat, "pad_mode": "replicate" if pad_mode == "edge" else pad_mode}
