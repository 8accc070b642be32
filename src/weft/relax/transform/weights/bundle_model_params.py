"""BundleModelParams: a function takes its weights as one tuple.

Before: ``main(x, w, b)`` with the attribute ``num_input`` 1. After: ``main(x, model_params)`` with
a tuple ``model_params``, and ``w = model_params[0]`` is inserted before the first use of ``w``.
A function without weights takes an empty tuple, so that all functions are called alike.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.node import Array, expect
from weft.relax.expr import BindingBlock, Function, SeqExpr, TupleGetItem, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import PassError


class _Bundler(PyExprMutator):
    """Binds each weight at its first use in a block."""

    def __init__(self, weights: dict[Var, int], bundle: Var) -> None:
        super().__init__()
        self.weights, self.bundle = weights, bundle
        self.bound: dict[Var, Var] = {}

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        outer, self.bound = self.bound, {}
        rewritten = super().visit_binding_block(block)
        self.bound = outer
        return rewritten

    def visit_var_(self, op: Var) -> RelaxExpr:
        index = self.weights.get(op)
        if index is None:
            return super().visit_var_(op)
        if op not in self.bound:
            field = TupleGetItem(self.bundle, index)
            self.bound[op] = self.builder_.emit(field, op.name_hint)
        return self.bound[op]

    def visit_seq_expr_(self, op: SeqExpr) -> SeqExpr:
        outer, self.bound = self.bound, {}
        rewritten = expect(super().visit_seq_expr_(op), SeqExpr)
        self.bound = outer
        return rewritten


def bundle_model_params(func: Function, param_tuple_name: str | None = None) -> Function:
    """The function that takes its weights (the parameters after ``num_input``) as one tuple."""
    count = func.attrs.get("num_input")
    if count is None:
        return func
    if not 0 <= int(count) <= len(func.params):
        raise PassError(
            f"BundleModelParams: num_input is {int(count)}, but the function has only "
            f"{len(func.params)} parameters"
        )
    weights = func.params[int(count) :]
    info = TupleStructInfo([weight.struct_info for weight in weights])
    bundle = Var(param_tuple_name or "model_params", info)
    positions = {weight: index for index, weight in enumerate(weights)}
    bundled = func.with_(params=Array([*func.params[: int(count)], bundle]))
    return _Bundler(positions, bundle).visit_expr(bundled)


BundleModelParams = define_function_pass("BundleModelParams", bundle_model_params, 1)
