"""Numbers that only the data tell: ``tensor.item()``."""

from __future__ import annotations

import torch

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.struct_info import ShapeStructInfo
from weft.support.errors import UnsupportedError


@converter("aten._local_scalar_dense.default", "aten.item.default")
def item(context: Context, self: Expr) -> Expr | PrimExpr:
    """The number in a tensor of one element.

    An integer becomes the variable of torch's symbol, defined where the program comes to it; a
    float stays a tensor without dimensions, which promotes as a number does. Of a bool torch says
    that its symbol equals 1. An integer that must be an extent, as torch sees where they meet, is
    that extent.
    """
    value = context.node.meta["val"]
    expression = value.node.expr
    flat = context.emit(op.reshape(self, [1]))
    if isinstance(value, torch.SymFloat):
        dtype = "float64" if context.dtype_of(self) == "float64" else "float32"
        tensor = context.emit(op.reshape(context.cast(flat, dtype), []))
        context.symbols.floats[expression] = tensor
        return tensor
    symbols = list(expression.free_symbols)
    is_integer = isinstance(value, torch.SymInt)
    if is_integer and all(symbol in context.symbols for symbol in symbols):
        return context.symbols.expression(expression)
    if (
        len(symbols) != 1
        or symbols[0] in context.symbols
        or (is_integer and expression is not symbols[0])
    ):
        raise UnsupportedError(
            f"item(): expected an integer or a float that only the data tell, got {value} of "
            f"{context.dtype_of(self)}; use torch.where with the tensor itself"
        )
    shape = context.emit(op.tensor_to_shape(context.cast(flat, "int64")))
    variable = context.symbols.define(symbols[0])
    context.builder.match_cast(shape, ShapeStructInfo([variable]))
    return context.symbols.expression(expression)
