"""ReorderPermuteDimsAfterConcat: parts that are all transposed alike are joined first.

Before: ``a1 = R.permute_dims(a); b1 = R.permute_dims(b); w = R.concat([a1, b1], axis=1)``.
After: ``c = R.concat([a, b], axis=0); w = R.permute_dims(c)``. A product with ``w`` can then read
the joined matrix as it lies. The pass does what TVM's pass of this name does, for any number of
parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.analysis.bindings import get_var2val
from weft.relax.dpl import is_op, rewrite_call, wildcard
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import Call, Expr, Function, Tuple, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.transform.passes import define_function_pass

_PERMUTE: Final = Op.get("relax.permute_dims")


def _moved(concat: Call, values: Mapping[Var, RelaxExpr]) -> Expr | None:
    """The transposed concatenation of what the parts transpose; None if they differ."""
    parts: RelaxExpr = concat.args[0]
    parts = values.get(parts, parts) if isinstance(parts, Var) else parts
    dims, axis = tensor_dims(concat.struct_info), concat.attrs["axis"]
    if not isinstance(parts, Tuple) or len(parts.fields) < 2 or dims is None or axis is None:
        return None
    calls = [values.get(part, part) if isinstance(part, Var) else part for part in parts.fields]
    turns = [call for call in calls if isinstance(call, Call) and call.op is _PERMUTE]
    orders = [_order(turn, len(dims)) for turn in turns]
    if len(turns) < len(calls) or any(order != orders[0] for order in orders):
        return None
    joined = op.concat([turn.args[0] for turn in turns], axis=orders[0][axis % len(dims)])
    return op.permute_dims(joined, turns[0].attrs["axes"])


def _order(turn: Call, rank: int) -> list[int]:
    """The axes of the operand in the order of the result."""
    axes = turn.attrs["axes"]
    return list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]


def reorder_permute_dims_after_concat(func: Function) -> Function:
    """The function with concatenations transposed instead of their parts."""
    values, pattern = get_var2val(func), is_op("relax.concat")(wildcard())

    def moved(expr: Expr, matched: Mapping[Pattern, RelaxExpr]) -> Expr:
        return _moved(expect(matched[pattern], Call), values) or expr

    return rewrite_call(pattern, moved, func)


ReorderPermuteDimsAfterConcat = define_function_pass(
    "ReorderPermuteDimsAfterConcat", reorder_permute_dims_after_concat, 1
)
