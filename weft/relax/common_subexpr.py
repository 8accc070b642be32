"""Common subexpressions: a value that was computed before is not computed again.

Value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970) over
bindings in order: in graphs every variable is bound once, so two structurally equal pure values are
the same value wherever the first one's variable is visible. The later binding becomes a renaming
(``y = x``), which the canonical form drops.
"""

from __future__ import annotations

from typing import Any

from weft.ir.structural import structural_equal
from weft.relax.analysis.purity import contains_impure_call
from weft.relax.expr import (
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator


class _Eliminator(PyExprMutator):
    """Remembers values, scope by scope."""

    def __init__(self, call_only: bool) -> None:
        super().__init__()
        self.kinds = Call if call_only else Call | Tuple | TupleGetItem
        self.seen: dict[Any, list[tuple[Any, Var]]] = {}

    def scoped(self, method: Any, node: Any) -> Any:
        """Visit ``node`` so that what it remembers is forgotten afterwards."""
        outer = self.seen
        self.seen = {key: list(found) for key, found in outer.items()}
        made = method(node)
        self.seen = outer
        return made

    def visit_function_(self, op: Function) -> Any:
        return self.scoped(super().visit_function_, op)

    def visit_if_(self, op: If) -> Any:
        cond = self.visit_expr(op.cond)
        then = self.scoped(self.visit_with_new_scope, op.true_branch)
        other = self.scoped(self.visit_with_new_scope, op.false_branch)
        return op.with_(cond=cond, true_branch=then, false_branch=other)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        made = super().visit_dataflow_block_(block)
        for found in self.seen.values():
            found[:] = [entry for entry in found if not isinstance(entry[1], DataflowVar)]
        return made

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        entries = self.entries(value)
        for known, name in entries:
            if structural_equal(known, value) and name.struct_info == value.struct_info:
                self.builder_.emit_normalized(VarBinding(binding.var, name, span=binding.span))
                if isinstance(binding.var, DataflowVar) or not isinstance(name, DataflowVar):
                    self.set_var_remap(binding.var.vid, name)
                return
        if value is binding.value:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit(binding, binding.var, value)
        entries.append((value, self.get_var_remap(binding.var)))

    def entries(self, value: Any) -> list[tuple[Any, Var]]:
        """Values that may be equal to this one, with their variables."""
        if not isinstance(value, self.kinds) or contains_impure_call(value):
            return []
        return self.seen.setdefault(_key(value), [])


def _key(value: Any) -> Any:
    """What equal values have in common, and most others have not; variables count by identity."""
    if isinstance(value, Call):
        return (value.op, *map(_key, value.args))
    if isinstance(value, Tuple):
        return (Tuple, *map(_key, value.fields))
    if isinstance(value, TupleGetItem):
        return (TupleGetItem, value.tuple_value, value.index)
    return value if isinstance(value, Var) else type(value)


def eliminate_common_subexpr(func: Function, call_only: bool = False) -> Function:
    """The function with each value computed once; ``call_only`` leaves tuples and fields alone."""
    made: Function = _Eliminator(call_only).visit_expr(func)
    return made

