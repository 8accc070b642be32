"""Lowering of the operators of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call
from weft.relax.transform.legalize.rule import Rule, plain, table, with_attrs


def _resize(te_func: Callable[..., Any], hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs, info = call.attrs, call.args[1].struct_info
        return bb.call_te(
            te_func, call.args[0], plain(attrs["roi"]), list(info.values),
            layout=attrs["layout"], method=attrs["method"],
            coordinate_transformation_mode=attrs["coordinate_transformation_mode"],
            rounding_method=attrs["rounding_method"], bicubic_alpha=attrs["cubic_alpha"],
            bicubic_exclude=attrs["cubic_exclude"],
            extrapolation_value=attrs["extrapolation_value"],
            out_dtype=plain(attrs["out_dtype"]), primfunc_name_hint=hint,
        )  # fmt: skip

    return rule


def _affine_grid(bb: BlockBuilder, call: Call) -> Any:
    size = list(call.args[1].struct_info.values)
    return bb.call_te(
        topi.image.affine_grid, call.args[0], size, call.attrs["align_corners"],
        primfunc_name_hint="affine_grid",
    )  # fmt: skip


TABLE = table(
    {
        "image.resize1d": _resize(topi.image.resize1d, "resize1d"),
        "image.resize2d": _resize(topi.image.resize2d, "resize2d"),
        "image.resize3d": _resize(topi.image.resize3d, "resize3d"),
        "image.grid_sample": with_attrs(
            topi.image.grid_sample, "method", "layout", "padding_mode", "align_corners"
        ),
        "image.affine_grid": _affine_grid,
    }
)
