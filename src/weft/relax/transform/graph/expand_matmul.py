"""ExpandMatmulOfSum, ReorderTakeAfterMatmul: products with a matrix that is computed in each call.

Low-rank adapters are the case: ``x @ (w + a @ b)`` and ``x @ take(adapters, which)``. Before:
``s = R.add(a, b); y = R.matmul(x, s)``. After: ``p = R.matmul(x, a); q = R.matmul(x, b);
y = R.add(p, q)``, so that AdjustMatmulOrder finds products of three; not where the sum can be
computed before inference. Before: ``w = R.take(table, indices, axis=1); y = R.matmul(x, w)``.
After: ``t = R.matmul(x, table); y = R.take(t, indices, axis=1)``: no copy of the weights. Where
each row of a batch takes its own matrix, all are multiplied and each row takes its result.

The passes do what TVM's of these names do, but leave sums that broadcast and vectors as they are,
where the results would differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.analysis.compile_time import known_at_compile_time
from weft.relax.dpl import is_op, rewrite_call, wildcard
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import Call, Constant, Expr, Function, ShapeExpr
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import same_dim, same_dims
from weft.relax.transform.passes import define_function_pass

Matched = Mapping[Pattern, RelaxExpr]


class _Sums:
    """The pattern of a product with a sum, and how a match is rewritten."""

    def __init__(self, func: Function) -> None:
        self.known = known_at_compile_time(func)
        self.x, self.a, self.b = wildcard(), wildcard(), wildcard()
        self.sum = is_op("relax.add")(self.a, self.b)
        self.transposed = is_op("relax.permute_dims")(self.sum)
        self.pattern = is_op("relax.matmul")(self.x, self.sum | self.transposed)

    def rewritten(self, expr: Expr, matched: Matched) -> Expr:
        parts = [matched[self.a], matched[self.b]]
        dims = [tensor_dims(part.struct_info) for part in parts]
        is_known = [part in self.known or isinstance(part, Constant) for part in parts]
        if all(is_known) or not same_dims(*dims):
            return expr
        if self.transposed in matched:
            axes = expect(matched[self.transposed], Call).attrs["axes"]
            parts = [op.permute_dims(part, axes) for part in parts]
        x, out_dtype = matched[self.x], expect(matched[self.pattern], Call).attrs["out_dtype"]
        return op.add(*[op.matmul(x, part, out_dtype) for part in parts])


class _Takes:
    """The pattern of a product with rows or matrices of a table, and how a match is rewritten."""

    def __init__(self) -> None:
        self.x, self.table, self.indices = wildcard(), wildcard(), wildcard()
        self.take = is_op("relax.take")(self.table, self.indices)
        self.pattern = is_op("relax.matmul")(self.x, self.take)

    def rewritten(self, expr: Expr, matched: Matched) -> Expr:
        factors = [matched[part] for part in (self.x, self.table, self.indices)]
        x, table, indices = (tensor_dims(factor.struct_info) for factor in factors)
        result = tensor_dims(expr.struct_info)
        if not x or not table or not result or len(indices or ()) != 1:
            return expr
        take = expect(matched[self.take], Call)
        out_dtype = expect(matched[self.pattern], Call).attrs["out_dtype"]
        axis, mode = take.attrs["axis"], take.attrs["mode"]
        axis = None if axis is None else axis % len(table)
        if axis == len(table) - 1 and len(table) > 1:
            product = op.matmul(*factors[:2], out_dtype)
            return op.take(product, factors[2], len(result) - 1, mode)
        if axis == 0 and indices and len(table) == len(x) == 3 and same_dim(x[0], indices[0]):
            each = _each_product(factors[:2], (x, table), out_dtype)
            return op.einsum([op.take(each, factors[2], 2, mode)], "ijik->ijk")
        return expr


def _each_product(
    factors: Sequence[RelaxExpr], dims: Sequence[Sequence[PrimExpr]], out_dtype: str | None
) -> Expr:
    """(b, n, t, m): each row of (b, n, k) times each of the matrices of (t, k, m)."""
    (batch, rows, _), (count, depth, columns) = dims
    turned = op.permute_dims(factors[1], [1, 0, 2])
    joined = op.reshape(turned, ShapeExpr([depth, count * columns]))
    product = op.matmul(factors[0], joined, out_dtype)
    return op.reshape(product, ShapeExpr([batch, rows, count, columns]))


def expand_matmul_of_sum(func: Function) -> Function:
    """The function with sums of products instead of products with sums."""
    sums = _Sums(func)
    return rewrite_call(sums.pattern, sums.rewritten, func)


def reorder_take_after_matmul(func: Function) -> Function:
    """The function with rows taken of products instead of products with rows that are taken."""
    takes = _Takes()
    return rewrite_call(takes.pattern, takes.rewritten, func)


ExpandMatmulOfSum = define_function_pass("ExpandMatmulOfSum", expand_matmul_of_sum, 1)
ReorderTakeAfterMatmul = define_function_pass(
    "ReorderTakeAfterMatmul", reorder_take_after_matmul, 1
)
