"""The functions that build patterns: ``is_op("relax.add")(wildcard(), is_const())``.

The module also has the classes of kinds.py, leaves.py and tuples.py: in TVM they are found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.dpl.edge import PatternSeq, SameShapeConstraint
from weft.relax.dpl.kinds import (
    AndPattern,
    AttrPattern,
    CallPattern,
    DataTypePattern,
    DFPattern,
    Dim,
    FunctionPattern,
    NotPattern,
    OrPattern,
    ShapePattern,
    StructInfoPattern,
    TypePattern,
)
from weft.relax.dpl.leaves import (
    ConstantPattern,
    DataflowVarPattern,
    ExprPattern,
    ExternFuncPattern,
    GlobalVarPattern,
    PrimArrPattern,
    VarPattern,
    WildcardPattern,
)
from weft.relax.dpl.tuples import TupleGetItemPattern, TuplePattern, UnorderedTuplePattern
from weft.support.errors import IRValueError

Arguments = Sequence[DFPattern] | DFPattern | None
"""A list of patterns of the arguments, one pattern of their tuple, or None for any arguments."""


def is_var(name: str = "") -> VarPattern:
    """A variable (also a dataflow variable) of that name, or of any name."""
    return VarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A GlobalVar whose name contains ``name``."""
    return GlobalVarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A dataflow variable of that name, or of any name."""
    return DataflowVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant tensor."""
    return ConstantPattern()


def is_expr(expr: RelaxExpr) -> ExprPattern:
    """An expression structurally equal to ``expr``."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator; ``is_op("relax.add")(x, y)`` is the pattern of its calls."""
    return ExprPattern(Op.get(op_name))


def is_tuple(
    fields: Sequence[DFPattern], unordered: bool = False
) -> TuplePattern | UnorderedTuplePattern:
    """A tuple of these fields, in this order or in any."""
    if not isinstance(fields, Sequence):
        raise IRValueError(f"is_tuple: expected a list of patterns, got {type(fields).__name__}")
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Field ``index`` of a tuple (None: any)."""
    return TupleGetItemPattern(tuple_value, index)


def wildcard() -> WildcardPattern:
    """Any expression."""
    return WildcardPattern()


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of a data type."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """An expression with these attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def is_shape(shape: Sequence[Dim]) -> PrimArrPattern:
    """A shape that is an operand, such as the second argument of reshape."""
    return PrimArrPattern(shape)


def reject(pattern: DFPattern) -> NotPattern:
    """Any expression that ``pattern`` does not match."""
    return NotPattern(pattern)


def is_call_tir(
    func_name: str, args: Arguments = None, tir_vars: DFPattern | None = None
) -> CallPattern:
    """``R.call_tir`` of a function whose name contains ``func_name``."""
    more = () if tir_vars is None else (tir_vars,)
    callee = GlobalVarPattern(func_name)
    return is_op("relax.call_tir")(callee, _arguments(args), *more, add_constraint=False)


def is_call_dps_packed(func_name: str, args: Arguments = None) -> CallPattern:
    """``R.call_dps_packed`` of a registered function."""
    callee = ExternFuncPattern(func_name)
    return is_op("relax.call_dps_packed")(callee, _arguments(args), add_constraint=False)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """``R.call_packed`` of a registered function."""
    callee = ExternFuncPattern(func_name)
    if args is None:
        return callee(varg_default_wildcard=True, add_constraint=False)
    return callee(*args)


def _arguments(args: Arguments) -> DFPattern:
    """The pattern of the tuple of arguments."""
    if args is None:
        return wildcard()
    return args if isinstance(args, DFPattern) else TuplePattern(args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> DFPattern:
    """``activation(op(lhs, rhs) + bias)``, with the bias and the activation only if asked for."""
    out: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out


__all__ = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DataTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "FunctionPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternSeq",
    "PrimArrPattern",
    "SameShapeConstraint",
    "ShapePattern",
    "StructInfoPattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "UnorderedTuplePattern",
    "VarPattern",
    "WildcardPattern",
    "has_attr",
    "has_dtype",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
    "is_const",
    "is_dfv",
    "is_expr",
    "is_gv",
    "is_op",
    "is_shape",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "make_fused_bias_activation_pattern",
    "reject",
    "wildcard",
]
