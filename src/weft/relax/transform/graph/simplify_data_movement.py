"""SimplifyDataMovement: moves transposes, reshapes and slices until they cancel or cost nothing.

Before, as exporters write attention and linear layers of two-dimensional views::

    a = R.reshape(x, (64, 768)); b = R.matmul(a, w); c = R.reshape(b, (1, 64, 768))
    d = R.permute_dims(R.reshape(c, (1, 64, 12, 64)), (0, 2, 1, 3))
    e = R.permute_dims(d, (0, 2, 1, 3))

After: ``c = R.matmul(x, w); e = R.reshape(c, (1, 64, 12, 64))``. Transposes and reshapes move
towards the results, past products with a matrix and element-wise operators, until two meet and
cancel. Slices move towards the inputs. A transpose that only moves axes of extent 1 becomes a
reshape, which copies nothing. The rules are in ``weft.relax.transform.graph.movement``.

Cancelling transposes is a classic of graph optimisers (TASO, Jia et al., SOSP 2019, does it by
search; ONNX Runtime's transpose optimizer pushes them by rules of cost).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.traits import Trait, has
from weft.relax.analysis.bindings import uses
from weft.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    Expr,
    Function,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.graph.movement import MOVEMENTS
from weft.relax.transform.passes import define_operator_pass


@dataclass
class _Known:
    """What is known about the variables of a dataflow block."""

    calls: dict[Var, Call] = field(default_factory=dict)
    """Variable -> the call that it is bound to."""
    products: set[Var] = field(default_factory=set)
    """Variables computed from a product by element-wise and moving operators only."""
    renamed: dict[Var, RelaxExpr] = field(default_factory=dict)
    """Variable -> the value that a rule found it to be equal to."""


class _Mover(PyExprMutator):
    def __init__(self, counts: dict[Var, int]) -> None:
        super().__init__()
        self.counts = counts
        self.known: _Known | None = None
        """What is known in the current dataflow block; None outside of one."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer, self.known = self.known, _Known()
        rewritten = super().visit_dataflow_block_(block)
        self.known = outer
        return rewritten

    def visit_function_(self, op: Function) -> Function:
        outer, self.known = self.known, None  # a local function is outside of the block
        rewritten = expect(super().visit_function_(op), Function)
        self.known = outer
        return rewritten

    def visit_var_binding_(self, binding: VarBinding) -> None:
        super().visit_var_binding_(binding)
        var = self.get_var_remap(binding.var)
        self.counts[var] = self.counts.get(binding.var, 0)
        self.note(var)

    def note(self, var: Var) -> None:
        """Remember the call that a variable is bound to."""
        value, known = self.lookup_binding(var), self.known
        if known is None:
            return
        if isinstance(value, Var | Constant):
            known.renamed[var] = value
        if isinstance(value, Call):
            known.calls[var] = value
            carries = has(value.op, Trait.ELEMENTWISE | Trait.MOVES)
            if has(value.op, Trait.CONTRACTION) or (
                carries and any(used in known.products for used in uses(value))
            ):
                known.products.add(var)

    def visit_var_(self, op: Var) -> RelaxExpr:
        var = super().visit_var_(op)
        if self.known is None or not isinstance(var, Var):
            return var
        return self.known.renamed.get(var, var)

    def visit_call_(self, op: Call) -> RelaxExpr:
        return self.simplified(self.visit_expr_post_order(op))

    def simplified(self, call: Expr) -> Expr:
        """Apply rules to a call until none fits. That ends, since each rule moves something on."""
        while self.known is not None and isinstance(call, Call):
            rule = MOVEMENTS.get(call.op)
            changed = None if rule is None else rule(self, call)
            if changed is None:
                break
            call = self.builder_.normalize(changed)
        return call

    # What rules may ask

    def value(self, expr: RelaxExpr) -> Call | None:
        """The call that a variable of the current block is bound to, or None."""
        return self.known.calls.get(expr) if self.known and isinstance(expr, Var) else None

    def emit(self, expr: Expr) -> Expr:
        """Bind a value after simplifying it; returns the new variable, or an equal old one."""
        value = self.simplified(self.builder_.normalize(expr))
        if not isinstance(value, Call):
            return value
        var = self.builder_.emit(value)
        self.note(var)
        return var

    def follows_product(self, expr: RelaxExpr) -> bool:
        """Whether a value is computed from a product by element-wise and moving operators only."""
        return self.known is not None and expr in self.known.products

    def is_used_once(self, expr: RelaxExpr) -> bool:
        """Whether a value of the old program is used once."""
        return not isinstance(expr, Var) or self.counts.get(expr, 1) <= 1


def simplify_data_movement(func: Function) -> Function:
    """The function in which transposes, reshapes and slices cancel or cost nothing."""
    rewritten = _Mover(dict(uses(func))).visit_expr(func)
    return func if rewritten is func else canonicalize_bindings(rewritten)


SimplifyDataMovement = define_operator_pass("SimplifyDataMovement", simplify_data_movement)
