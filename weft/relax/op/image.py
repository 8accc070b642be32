"""``relax.op.image``: resampling of images."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Dtype, Shape, operator
from weft.relax.op.infer import VOID, check_rank, dims_of, fail, result, shape_arg
from weft.relax.op.layout import parse_layout
from weft.relax.struct_info import TensorStructInfo


def infer_resize2d(call: Call) -> TensorStructInfo:
    """The spatial extents replaced by the size."""
    layout = parse_layout(call.attrs["layout"], "NCHW", f"{call.op.name}: layout")
    info, size = check_rank(call, 0, layout.ndim), shape_arg(call, 1)
    if size.ndim not in (-1, 2):
        fail(call, f"size: expected 2 extents, got {size.ndim}")
    given = call.attrs["out_dtype"]
    dtype = info.dtype if given == VOID else given
    dims = dims_of(info)
    if dims is None or size.values is None:
        return result(None, dtype, layout.ndim, info.vdevice)
    made = [*layout.to_canonical(dims, "NCHW")[:2], *size.values]
    return result(layout.from_canonical(made, "NCHW"), dtype, vdevice=info.vdevice)


@operator("relax.image.resize2d", infer_resize2d)
def resize2d(
    data: Expr, size: Shape, roi: Any = None, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round",
    cubic_alpha: float = -0.75, cubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """The image at another size: nearest_neighbor, linear or cubic."""
    edges = [0.0] * 4 if roi is None else list(roi) if isinstance(roi, list | tuple) else [roi] * 4
    made: dict[str, Any] = {"roi": [float(edge) for edge in edges]}
    if isinstance(size, int):
        made["size"] = (size, size)
    return made
