"""KillAfterLastUse: releases each value after the last binding that uses it.

If ``_ = cls.exp(x, a)`` is the last binding that uses ``a``, ``_ = R.memory.kill_tensor(a)`` is
inserted after it. Bindings that only rename a variable are removed first, since a value must not be
killed under one name and used under another. Results of the function, constants, shapes, numbers,
functions, and values that are killed already are left alone. Branches and local functions kill the
variables that they bind; outer variables that a branch uses last are killed after the whole ``if``.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.expr import (
    Binding,
    Call,
    Constant,
    Function,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
)
from weft.relax.transform.graph.canonicalize_bindings import canonicalize_bindings
from weft.relax.transform.passes import define_function_pass

STORAGES: Final = frozenset({"relax.memory.alloc_storage", "relax.vm.alloc_storage"})
_TENSOR, _STORAGE, _OBJECT = range(3)
_KILL_OF: Final = {
    _TENSOR: Op.get("relax.memory.kill_tensor"),
    _STORAGE: Op.get("relax.memory.kill_storage"),
    _OBJECT: Op.get("relax.vm.kill_object"),
}


def _operator(value: RelaxExpr) -> str:
    """The name of the operator that a binding's value calls, else ""."""
    return value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else ""


def _kill_kind(binding: Binding) -> int | None:
    """How the variable of a binding is killed; None if it holds nothing to release."""
    value, info = binding.value, binding.var.struct_info
    if isinstance(value, Constant) and isinstance(binding, VarBinding):
        return None
    if isinstance(info, FuncStructInfo | ShapeStructInfo | PrimStructInfo):
        return None
    if _operator(value) in STORAGES:
        return _STORAGE
    return _TENSOR if isinstance(info, TensorStructInfo) else _OBJECT


class _LastUses(PyExprVisitor):
    """Variable -> the binding of a sequence that uses it last; None if the sequence returns it."""

    def __init__(self) -> None:
        self.last: dict[Var, Var | None] = {}
        self.killed: set[Var] = set()
        self.current: Var | None = None

    def sequence(self, seq: SeqExpr) -> dict[Var, list[tuple[int, Var]]]:
        """Binding variable -> [(how to kill it, variable)] for those that end after it."""
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        for binding in bindings:
            self.current = binding.var
            if has(getattr(binding.value, "op", None), Trait.KILLS):
                self.killed.add(binding.value.args[0])
            else:
                self.visit_expr(binding.value)
        self.current = None
        self.visit_expr(seq.body)
        ends: dict[Var, list[tuple[int, Var]]] = {}
        for binding in bindings:
            last = self.last.get(binding.var)
            kind = _kill_kind(binding)
            if last is not None and kind is not None and binding.var not in self.killed:
                ends.setdefault(last, []).append((kind, binding.var))
        return {var: sorted(items, key=lambda item: item[0]) for var, items in ends.items()}

    def visit_var_(self, op: Var) -> None:
        self.last[op] = self.current


class _KillInserter(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[Var, list[tuple[int, Var]]] = {}

    def visit_seq_expr_(self, op: SeqExpr) -> SeqExpr:
        outer, self.ends = self.ends, _LastUses().sequence(op)
        rewritten = expect(super().visit_seq_expr_(op), SeqExpr)
        self.ends = outer
        return rewritten

    def visit_binding(self, binding: Binding) -> None:
        super().visit_binding(binding)
        for kind, var in self.ends.get(binding.var, ()):
            self.builder_.emit(Call(_KILL_OF[kind], [self.get_var_remap(var)]), "_")


def _without_unused_names(func: Function) -> Function:
    """The function without bindings that only rename a variable and are not used."""
    counter = _LastUses()
    counter.visit_expr(func)

    class Remover(PyExprMutator):
        def visit_binding(self, binding: Binding) -> None:
            renames = isinstance(binding.value, Var) and (
                not isinstance(binding, MatchCast)
                or binding.value.struct_info == binding.var.struct_info
            )
            if not renames or binding.var in counter.last:
                super().visit_binding(binding)

    return Remover().visit_expr(func)


def kill_after_last_use(func: Function) -> Function:
    """The function with each value released after its last use."""
    func = _without_unused_names(canonicalize_bindings(func))
    return _KillInserter().visit_expr(func)


KillAfterLastUse = define_function_pass("KillAfterLastUse", kill_after_last_use)
