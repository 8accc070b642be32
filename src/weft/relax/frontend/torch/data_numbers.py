"""Numbers that are computed with floats: ``round(scale.item() * 3)``, ``int(height * 1.7)``.

torch has symbols for floats of the data, but the shapes of a program have variables for integers
only. So a float is a tensor without dimensions (``float64``, as Python computes), and so is what is
computed from it. An integer that comes out becomes a variable, since it may be an extent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import sympy
import torch
from torch.utils._sympy.symbol import SymT, symbol_is_type

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, ShapeExpr, const
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.struct_info import ShapeStructInfo
from weft.support.errors import UnsupportedError

_FLOAT: Final = "float64"
Operator = Callable[..., Expr]


OPERATORS: Final[Mapping[str, Operator]] = {
    "Add": op.add,
    "Mul": op.multiply,
    "FloatTrueDiv": op.divide,
    "IntTrueDiv": op.divide,
    "FloatPow": op.power,
    "Pow": op.power,
    "Max": op.maximum,
    "Min": op.minimum,
    "Abs": op.abs,
    "OpaqueUnaryFn_sqrt": op.sqrt,
    "RoundToInt": op.round,
    "CeilToInt": op.ceil,
    "FloorToInt": op.floor,
    "TruncToInt": op.trunc,
}
"""Functions of sympy and of torch's own by class name; of several operands, two at a time."""


def depends_on_data_float(value: sympy.Basic) -> bool:
    """Whether a float that only the data tell stands in an expression."""
    return any(symbol_is_type(symbol, SymT.UNBACKED_FLOAT) for symbol in value.free_symbols)


def number_of_data(
    builder: BlockBuilder, symbols: SymbolTable, value: torch.SymInt | torch.SymFloat
) -> Expr | PrimExpr:
    """A float as a tensor without dimensions, an integer as a new variable."""
    expression = value.node.expr
    if isinstance(value, torch.SymFloat):
        return _tensor(builder, symbols, expression)
    return _variable(builder, symbols, expression)


def compute_roundings(builder: BlockBuilder, symbols: SymbolTable, value: sympy.Basic) -> None:
    """Give a variable to each float of sizes that is rounded in an expression: ``int(n * 1.7)``.

    The program computes it in float64, as Python does: the product of ``n * 4.35`` is 434.99... for
    100 rows. What the symbol table writes exactly without floats stays an expression.
    """
    for rounding in symbols.roundings_of_floats(value):
        _variable(builder, symbols, rounding)


def _variable(builder: BlockBuilder, symbols: SymbolTable, expression: sympy.Basic) -> PrimExpr:
    """A new variable, whose value the program computes as a tensor."""
    tensor = _tensor(builder, symbols, expression)
    integer = builder.emit(op.reshape(op.astype(tensor, "int64"), [1]))
    shape = builder.emit(op.tensor_to_shape(integer))
    variable = symbols.number(expression)
    builder.match_cast(shape, ShapeStructInfo([variable]))
    return variable


def _tensor(builder: BlockBuilder, symbols: SymbolTable, value: sympy.Basic) -> Expr:
    """The tensor without dimensions that an expression is."""
    known = symbols.floats.get(value)
    if known is not None:
        return builder.emit(op.astype(known, _FLOAT))
    if value.is_number:
        return const(float(value), _FLOAT)
    if type(value).__name__ == "ToFloat":  # all are floats here
        return _tensor(builder, symbols, value.args[0])
    if value.is_integer and not symbols.roundings_of_floats(value):
        extents = builder.emit(op.shape_to_tensor(ShapeExpr([symbols.expression(value)])))
        return builder.emit(op.astype(op.reshape(extents, []), _FLOAT))
    operator = OPERATORS.get(type(value).__name__)
    if operator is None:
        raise UnsupportedError(
            f"a number of the data: {type(value).__name__} in {value} has no counterpart in weft; "
            "compute it with tensors, without item()"
        )
    first, *others = [_tensor(builder, symbols, item) for item in value.args]
    result = first if others else builder.emit(operator(first))
    for other in others:
        result = builder.emit(operator(result, other))
    return result
