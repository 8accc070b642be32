"""What users give as the shape of a tensor expression, checked and made into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from weft.ir.expr import ExprLike, IntImm, PrimExpr, as_prim_expr
from weft.ir.node import Array
from weft.support.errors import IRTypeError, IRValueError

ShapeLike = ExprLike | Sequence[ExprLike]


def as_shape(shape: ShapeLike) -> Array[PrimExpr]:
    """Make a shape from one extent or a sequence of extents (ints, expressions)."""
    if isinstance(shape, PrimExpr | int | np.integer) or hasattr(shape, "as_prim_expr"):
        shape = (shape,)
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise IRTypeError(f"expected a shape such as (128, 128), got {shape!r}")
    extents = []
    for extent in shape:
        size = as_prim_expr(_whole(extent) if isinstance(extent, float) else extent)
        if not size.dtype.is_integral or size.dtype.is_bool:
            raise IRTypeError(f"a shape holds integers, got {size.dtype}")
        if isinstance(size, IntImm) and size.value < 0:
            raise IRValueError(f"an extent must not be negative, got {size.value}")
        extents.append(size)
    return Array(extents)


def as_shapes(shape: Any) -> list[Array[PrimExpr]]:
    """The shapes of one tensor, or of each of several."""
    if isinstance(shape, list | tuple) and shape and isinstance(shape[0], list | tuple):
        return [as_shape(item) for item in shape]
    return [as_shape(shape)]


def _whole(extent: float) -> int:
    if not extent.is_integer():
        raise IRTypeError(f"a shape holds integers, got {extent}")
    return int(extent)
