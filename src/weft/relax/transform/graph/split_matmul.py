"""SplitMatmul: a product whose result is only split is computed in parts, with parts of weights.

Before: ``p = add(matmul(x, w), b); q, k, v = split(p, 3, axis=-1)`` with constant ``w`` and ``b``.
After: ``q = add(matmul(x, w[:, :n]), b[:n])`` and so on. This saves the copy that the split makes.
It is the inverse of CombineParallelMatmul: one product of many columns is no faster than several of
hundreds of columns each.

The pass requires that all users take constant, disjoint ranges of at least ``FEWEST`` columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.graph.movement.slices import one_range, split_ranges
from weft.relax.transform.passes import define_operator_pass
from weft.runtime.weight_names import inherit_name

FEWEST: Final = 64
"""A product of at least so many columns fills the vectors and the cores of a machine."""
_MATMUL, _ADD = Op.get("relax.matmul"), Op.get("relax.add")
_SLICE, _SPLIT = Op.get("relax.strided_slice"), Op.get("relax.split")


@dataclass(frozen=True)
class _Product:
    """``matmul(left, weights)``, plus a bias if that is not None."""

    call: Call
    weights: Constant
    bias: Constant | None
    is_bias_first: bool


class _Splitter(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.cut: dict[Var, tuple[_Product, list[tuple[int, int]]]] = {}
        """Result of a slice or split -> (the product that it cuts, ranges of columns)."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.cut = _plan(block)
        return super().visit_dataflow_block_(block)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        plan = self.cut.get(binding.var)
        if plan is None:
            super().visit_var_binding_(binding)
            return
        product, ranges = plan
        parts = [self.part(product, *columns) for columns in ranges]
        is_tuple = isinstance(binding.value.struct_info, TupleStructInfo)
        joined_parts = Tuple(parts) if is_tuple else parts[0]
        self.reemit(binding, binding.var, self.builder_.normalize(joined_parts))

    def part(self, product: _Product, begin: int, end: int) -> Var:
        """Emit the product of the columns from ``begin`` to ``end``."""
        emit, call = self.builder_.emit, product.call
        weights = _columns(product.weights, begin, end)
        left = self.visit_expr(call.args[0])
        piece = emit(Call(_MATMUL, [left, weights], call.attrs, call.sinfo_args))
        if product.bias is None:
            return piece
        bias = _columns(product.bias, begin, end)
        return emit(op.add(bias, piece) if product.is_bias_first else op.add(piece, bias))


def _columns(array: Constant, begin: int, end: int) -> Constant:
    part = Constant(array.data.numpy()[..., begin:end].copy())
    inherit_name(part.data, [array.data])
    return part


def _plan(block: DataflowBlock) -> dict[Var, tuple[_Product, list[tuple[int, int]]]]:
    """Result of a slice or split to replace -> (the product that it cuts, ranges of columns)."""
    values = {binding.var: binding.value for binding in block.bindings}
    users: dict[Var, list[Binding]] = {}
    for binding in block.bindings:
        for var, count in uses(binding.value).items():
            users.setdefault(var, []).extend([binding] * count)
    plan: dict[Var, tuple[_Product, list[tuple[int, int]]]] = {}
    for var in values:
        slices = users.get(var, [])
        cuts = [_ranges(user.value) for user in slices]
        if len(cuts) == 0 or None in cuts or not isinstance(var, DataflowVar):
            continue
        ranges = [columns for cut in cuts for columns in cut or ()]
        product = _product_of(var, values, users)
        if product is not None and len(ranges) > 1 and _are_apart(ranges):
            for user, cut in zip(slices, cuts, strict=True):
                plan[user.var] = product, cut or []
    return plan


def _product_of(
    var: Var, values: dict[Var, RelaxExpr], users: dict[Var, list[Binding]]
) -> _Product | None:
    """The product with constant weights, and its bias, that a variable is bound to; else None."""
    value: Any = values.get(var)
    bias: Constant | None = None
    is_first = False
    if isinstance(value, Call) and value.op is _ADD:
        left, right = value.args
        is_first = isinstance(left, Constant)
        operand, inner = (left, right) if is_first else (right, left)
        if not isinstance(inner, DataflowVar) or len(users.get(inner, ())) != 1:
            return None
        if not isinstance(operand, Constant) or not _is_bias(operand, value):
            return None
        bias, value = operand, values.get(inner)
    if not isinstance(value, Call) or value.op is not _MATMUL:
        return None
    weights = value.args[1]
    if not isinstance(weights, Constant) or len(tensor_dims(weights.struct_info) or ()) != 2:
        return None
    return _Product(value, weights, bias, is_first)


def _is_bias(bias: Constant, total: Call) -> bool:
    """Whether a constant has a value for each column and does not broadcast the product."""
    dims, whole = tensor_dims(bias.struct_info), tensor_dims(total.struct_info)
    if not dims or whole is None:
        return False
    return constant_value(dims[-1]) == constant_value(whole[-1]) and all(
        constant_value(dim) == 1 for dim in dims[:-1]
    )


def _ranges(call: Call) -> list[tuple[int, int]] | None:
    """The ranges of columns that a slice or split takes; None if it takes something else."""
    if not isinstance(call, Call) or call.op not in (_SLICE, _SPLIT):
        return None
    last = len(tensor_dims(call.args[0].struct_info) or ()) - 1
    if call.op is _SLICE:
        where = one_range(call)
        return [where[1:]] if where is not None and where[0] == last else None
    return split_ranges(call) if call.attrs["axis"] in (last, -1) else None


def _are_apart(ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether ranges do not overlap, and each has enough columns."""
    ordered = sorted(ranges)
    apart = all(first[1] <= other[0] for first, other in itertools.pairwise(ordered))
    return apart and all(end - begin >= FEWEST for begin, end in ordered)


def split_matmul(func: Function) -> Function:
    """The function with the parts of products computed apart."""
    return _Splitter().visit_expr(func)


SplitMatmul = define_operator_pass("SplitMatmul", split_matmul)
