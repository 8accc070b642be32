"""Bindings of a function by variable and by name; who uses which variable."""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.relax.expr import (
    Binding,
    DataflowBlock,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprVisitor


def all_bindings(root: object) -> list[Binding]:
    """Every binding below ``root``, inner ones first."""
    return collect(root, (VarBinding, MatchCast))


def bindings_in_order(func: Function) -> list[Binding]:
    """Every binding in program order; a binding comes before those nested in its value."""
    bindings: list[Binding] = []
    todo: list[Node] = [func.body]
    while todo:
        item = todo.pop()
        if isinstance(item, VarBinding | MatchCast):
            bindings.append(item)
            item = item.value
        if isinstance(item, If):
            todo += [item.false_branch, item.true_branch]
        elif isinstance(item, Function):
            todo.append(item.body)
        elif isinstance(item, SeqExpr):
            todo += [binding for block in item.blocks for binding in block.bindings][::-1]
    return bindings


def get_var2val(func: Function) -> dict[Var, Expr]:
    """The value of every bound variable."""
    return {binding.var: binding.value for binding in all_bindings(func)}


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings of variables by their name."""
    named: dict[str, list[Binding]] = {}
    for binding in all_bindings(func):
        named.setdefault(binding.var.name_hint, []).append(binding)
    return named


class _UseDef(PyExprVisitor):
    def __init__(self) -> None:
        self.users: dict[Var, list[Var]] = {}
        self.current: Var | None = None

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self._enter(binding)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._enter(binding)

    def _enter(self, binding: VarBinding | MatchCast) -> None:
        self.current = binding.var
        self.users.setdefault(binding.var, [])
        self.visit_expr(binding.value)
        self.current = None

    def visit_var_(self, op: Var) -> None:
        users = self.users.setdefault(op, [])
        if self.current is not None and self.current not in users:
            users.append(self.current)


def udchain(dfb: DataflowBlock) -> dict[Var, list[Var]]:
    """For each variable of a block, the variables whose values use it."""
    chain = _UseDef()
    chain.visit_binding_block(dfb)
    return chain.users


def functions_of(root: IRModule | Function) -> list[tuple[GlobalVar | None, Function]]:
    """(GlobalVar, function) for each graph function of a module; (None, root) for a function."""
    if isinstance(root, IRModule):
        return [(gv, f) for gv, f in root.functions.items() if isinstance(f, Function)]
    return [(None, root)]


def uses(expr: RelaxExpr) -> dict[Var, int]:
    """How often each variable is used."""
    counter = _Counter()
    counter.visit_expr(expr)
    return counter.counts


class _Counter(PyExprVisitor):
    def __init__(self) -> None:
        self.counts: dict[Var, int] = {}

    def visit_var_(self, op: Var) -> None:
        self.counts[op] = self.counts.get(op, 0) + 1
