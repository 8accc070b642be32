"""Common-subexpression elimination: a value that was computed before is not computed again.

Value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970) over the
bindings in order. In a graph every variable is bound once, so two structurally equal pure values
are the same wherever the first one's variable is visible. The later binding becomes a renaming
(``y = x``), which the canonical form removes. Two allocations are never the same value, and a
variable that an in-place call overwrites is never shared.

A log lists the entries that each scope added to the table, so that they can be removed at its end
and the cost stays linear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.structural import structural_equal, structural_key
from weft.ir.traits import Trait, has
from weft.relax.analysis.purity import contains_impure_call
from weft.relax.analysis.written import written_variables
from weft.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import StructInfo

Part = TypeVar("Part")
Result = TypeVar("Result")
Key = bytes | tuple[str, bytes]
"""The structural key of a value; for a match_cast, ("cast", the key of its operand)."""


class _Eliminator(PyExprMutator):
    """Remembers values by structure, scope by scope."""

    def __init__(self, call_only: bool) -> None:
        super().__init__()
        self.kinds = Call if call_only else Call | Tuple | TupleGetItem
        self.seen: dict[Key, list[tuple[RelaxExpr, Var]]] = {}
        self.log: list[tuple[Key, tuple[RelaxExpr, Var]]] = []
        self.written: set[Var] = set()
        """Variables that an in-place call overwrites; they are not shared."""

    def scoped(self, method: Callable[[Part], Result], node: Part) -> Result:
        """Visit ``node``, and remove the entries that it added to the table afterwards."""
        start = len(self.log)
        rewritten = method(node)
        self.forget(start)
        return rewritten

    def forget(self, start: int, keep: Callable[[Var], bool] | None = None) -> None:
        """Remove the entries since ``start`` from the table, except those that ``keep`` accepts."""
        added, self.log[start:] = self.log[start:], []
        for key, entry in added:
            if keep is not None and keep(entry[1]):
                self.log.append((key, entry))
            else:
                self.seen[key] = [item for item in self.seen[key] if item is not entry]

    def visit_function_(self, op: Function) -> Function:
        return expect(self.scoped(super().visit_function_, op), Function)

    def visit_if_(self, op: If) -> If:
        cond = self.visit_expr(op.cond)
        then = self.scoped(self.visit_with_new_scope, op.true_branch)
        other = self.scoped(self.visit_with_new_scope, op.false_branch)
        return op.with_(cond=cond, true_branch=then, false_branch=other)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        start = len(self.log)
        rewritten = super().visit_dataflow_block_(block)
        self.forget(start, keep=lambda var: not isinstance(var, DataflowVar))
        # An output that renames a dataflow variable stands for itself after the block.
        for binding in rewritten.bindings:
            var = binding.var
            if not isinstance(var, DataflowVar) and isinstance(
                self.get_var_remap(var.vid), DataflowVar
            ):
                self.set_var_remap(var.vid, var)
        return rewritten

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if binding.var in self.written or not self.is_eligible(value):
            self.emit(binding, value)
            return
        key = structural_key(value)
        name = self.lookup(key, value, value.struct_info)
        if name is None:
            self.emit(binding, value)
            self.remember(key, value, self.get_var_remap(binding.var.vid))
            return
        self.builder_.emit_normalized(VarBinding(binding.var, name, span=binding.span))
        self.set_var_remap(binding.var.vid, name)
        if isinstance(name, DataflowVar) and not isinstance(binding.var, DataflowVar):
            self.remember(key, value, binding.var)  # later blocks can use this one

    def emit(self, binding: VarBinding, value: RelaxExpr) -> None:
        """Emit a binding with the rewritten value."""
        if value is binding.value:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit(binding, binding.var, value)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        key = ("cast", structural_key(value))
        name = self.lookup(key, value, binding.struct_info)
        if name is None:
            self.builder_.emit_normalized(binding.with_(value=value))
            self.remember(key, value, binding.var)
        else:
            self.builder_.emit_normalized(VarBinding(binding.var, name, span=binding.span))
            self.set_var_remap(binding.var.vid, name)

    def is_eligible(self, value: RelaxExpr) -> bool:
        """Whether equal values may be shared: pure, no allocation, no in-place write."""
        if not isinstance(value, self.kinds) or contains_impure_call(value):
            return False
        return not (isinstance(value, Call) and has(value.op, Trait.ALLOCATES | Trait.WRITES))

    def lookup(self, key: Key, value: RelaxExpr, info: StructInfo | None) -> Var | None:
        """The variable of an equal value, or None."""
        for known, name in self.seen.get(key, ()):
            if structural_equal(known, value) and name.struct_info == info:
                return name
        return None

    def remember(self, key: Key, value: RelaxExpr, name: Var) -> None:
        """Add a value and its variable to the table and to the log."""
        entry = (value, name)
        self.seen.setdefault(key, []).append(entry)
        self.log.append((key, entry))


def eliminate_common_subexpr(func: Function, call_only: bool = False) -> Function:
    """The function with each value computed once; ``call_only`` leaves tuples and fields alone."""
    eliminator = _Eliminator(call_only)
    eliminator.written = written_variables(func)
    return eliminator.visit_expr(func)
