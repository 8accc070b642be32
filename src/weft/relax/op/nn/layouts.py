"""Layouts in rules of LegalizeOps: which ones topi supports, and transposes between them."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.relax.expr import Var
from weft.relax.op.lowering import Builder
from weft.relax.op.manipulate import permute_dims


def is_blocked(*layouts: str) -> bool:
    """Whether a layout splits an axis, as NCHW16c does."""
    return any(letter.islower() for layout in layouts for letter in layout)


def splits_space(*layouts: str) -> bool:
    """Whether a layout splits a spatial axis, which no operator of topi supports."""
    return any(letter in "dhw" for layout in layouts for letter in layout)


def in_layout(bb: Builder, tensor: RelaxExpr, layout: str, wanted: str) -> RelaxExpr:
    """The tensor transposed from ``layout`` to ``wanted``; the tensor itself if they are equal."""
    if layout == wanted:
        return tensor
    source = tensor if isinstance(tensor, Var) else bb.emit(tensor)
    return permute_dims(source, [layout.index(letter) for letter in wanted])


def operand_in_layout(bb: Builder, arg: RelaxExpr, layout: str, wanted: str) -> RelaxExpr:
    """The argument transposed from ``layout`` to ``wanted``, bound to a variable."""
    moved = in_layout(bb, arg, layout, wanted)
    return arg if moved is arg else bb.emit(moved)
