"""AdjustMatmulOrder: chooses between ``(a @ b) @ c`` and ``a @ (b @ c)``: what multiplies less.

Before: ``w = R.matmul(a, b); y = R.matmul(x, w)`` with a vector x and matrices (16, 2), (2, 32).
After: ``t = R.matmul(x, a); y = R.matmul(t, b)``, 96 multiplications instead of 1,536. If two of
the factors are weights (parameters from ``num_input`` on), they are multiplied first, since that
can be done before inference. The transpose of a product is treated as a product, too:
``(b @ a).T`` is ``a.T @ b.T``.

Multiplications are counted for one matrix of a batch. Symbols are taken to be positive and at most
what the attribute ``tir_var_upper_bound`` says. If neither order is proved to be better, the order
stays. The pass does what TVM's pass of this name does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import collect, post_order_visit, substitute
from weft.ir.node import Node
from weft.relax import op
from weft.relax.analysis.compile_time import known_at_compile_time
from weft.relax.dpl import is_op, rewrite_call, wildcard
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import Expr, Function
from weft.relax.ir.lattice import tensor_dims
from weft.relax.transform.passes import define_function_pass
from weft.tir.expr import Add, Mul, Sub, Var

Bounds = Mapping[str, int]
"""Name of a symbol -> its largest value."""

_POLYNOMIAL: Final = (Add, Sub, Mul, Var, IntImm)


class _Chains:
    """The pattern of two products in a row, and how a match is rewritten."""

    def __init__(self, func: Function) -> None:
        self.known = known_at_compile_time(func)
        bounds = func.attrs.get("tir_var_upper_bound") or {}
        self.bounds = {str(name): int(bound) for name, bound in bounds.items()}
        matmul, transposed = is_op("relax.matmul"), is_op("relax.permute_dims")
        self.a, self.b, self.c = wildcard(), wildcard(), wildcard()
        self.left = matmul(matmul(self.a, self.b), self.c)
        self.right = matmul(self.a, matmul(self.b, self.c))
        self.turned_left = matmul(transposed(matmul(self.b, self.a)), self.c)
        self.turned_right = matmul(self.a, transposed(matmul(self.c, self.b)))
        self.pattern = self.left | self.right | self.turned_left | self.turned_right

    def rewritten(self, expr: Expr, matched: Mapping[Pattern, RelaxExpr]) -> Expr | None:
        """The call with its products in the better order; itself if they are in that order."""
        factors = [matched[part] for part in (self.a, self.b, self.c)]
        known = [factor in self.known for factor in factors]
        shapes: list[Sequence[PrimExpr]] = [
            tensor_dims(factor.struct_info) or [] for factor in factors
        ]
        if all(known) or not all(shapes):
            return expr
        turned = [number for number in self.turned(matched) if len(shapes[number]) != 1]
        if len(shapes[1]) < 2 or any(len(shapes[number]) != 2 for number in turned):
            return expr  # with a vector in the middle there is no other order
        for number in turned:
            factors[number] = op.permute_dims(factors[number])
            shapes[number] = shapes[number][::-1]
        is_left = self.better(known, shapes)
        if is_left is None:
            return expr
        a, b, c = factors
        return op.matmul(op.matmul(a, b), c) if is_left else op.matmul(a, op.matmul(b, c))

    def turned(self, matched: Mapping[Pattern, RelaxExpr]) -> tuple[int, ...]:
        """The positions of the factors that are inside of a transposed product."""
        if self.turned_left in matched:
            return 0, 1
        return (1, 2) if self.turned_right in matched else ()

    def better(self, known: list[bool], shapes: list[Sequence[PrimExpr]]) -> bool | None:
        """Whether to multiply the first two factors first; None if neither order is proved best."""
        if known[1] and (known[0] or known[2]):
            return known[0]
        unit = IntImm("int64", 1)
        rows = unit if len(shapes[0]) == 1 else shapes[0][-2]
        columns = unit if len(shapes[2]) == 1 else shapes[2][-1]
        inner, outer = shapes[1][-2], shapes[1][-1]
        left = rows * outer * (inner + columns)
        right = inner * columns * (rows + outer)
        if is_positive(right - left, self.bounds):
            return True
        return False if is_positive(left - right, self.bounds) else None


def is_positive(value: PrimExpr, bounds: Bounds, strict: bool = True) -> bool:
    """Whether a polynomial in positive symbols is proved to be > 0 (>= 0 if not ``strict``).

    It must be linear in each symbol. Then its minimum is where each symbol is 1 or at its bound, or
    it must grow with a symbol that has no bound.
    """
    value = Analyzer().simplify(value)
    odd: list[Node] = []
    post_order_visit(value, lambda node: odd.append(node) if _is_odd(node) else None)
    symbols = collect(value, Var)
    if odd:
        return False
    if not symbols:
        number = value.value if isinstance(value, IntImm) else 0
        return number > 0 or (number == 0 and not strict)
    symbol = symbols[0]
    first, second, third = (
        substitute(value, {symbol: IntImm(symbol.dtype, number)}) for number in (1, 2, 3)
    )
    bend = Analyzer().simplify(third - second - second + first)
    if not isinstance(bend, IntImm) or bend.value != 0 or not is_positive(first, bounds, strict):
        return False
    if symbol.name not in bounds:
        return is_positive(second - first, bounds, strict=False)
    last = IntImm(symbol.dtype, bounds[symbol.name])
    return is_positive(substitute(value, {symbol: last}), bounds, strict)


def _is_odd(node: Node) -> bool:
    return isinstance(node, PrimExpr) and not isinstance(node, _POLYNOMIAL)


def adjust_matmul_order(func: Function) -> Function:
    """The function with the products of three factors in the better order."""
    chains = _Chains(func)
    return rewrite_call(chains.pattern, chains.rewritten, func)


AdjustMatmulOrder = define_function_pass("AdjustMatmulOrder", adjust_matmul_order, 1)
