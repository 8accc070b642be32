"""Tensors laid out another way: channels in blocks and back."""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.ir.expr import PrimExpr, Range, as_prim_expr
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.data_layout import bijective_layout
from weft.tir.expr import Var
from weft.topi import tag
from weft.topi.extents import compute_ax


def layout_transform(
    array: Tensor,
    src_layout: str,
    dst_layout: str,
    schedule_rule: str = "None",  # noqa: ARG001 - of TVM's signature
) -> Tensor:
    """The tensor in another layout of the same axes; blocks that are not full end in zeros.

    Raises IRValueError for texts that are no layouts, layouts of different axes, another rank.
    """
    between = bijective_layout(src_layout, dst_layout)
    shape = list(between.forward_shape(array.shape))
    zero = op.const(0, array.dtype)

    def element(*indices: PrimExpr) -> PrimExpr:
        source = list(between.backward_index(indices))
        known = Analyzer()
        for index, extent in zip(indices, shape, strict=True):
            if isinstance(index, Var):
                known.bind(index, Range(0, extent))
        inside: PrimExpr = op.const(True, "bool")
        for index, extent in zip(source, map(as_prim_expr, array.shape), strict=True):
            if not known.can_prove(index < extent):
                inside = op.logical_and(inside, index < extent)
        inside = known.simplify(inside)
        if op.is_const_int(inside, 1):
            return array(*source)
        return op.if_then_else(inside, array(*source), zero)

    return compute_ax(shape, element, "T_layout_trans", tag=tag.INJECTIVE)
