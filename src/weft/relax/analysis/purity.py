"""Side effects of calls, recursion between functions."""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.expr import Call, Expr, Function
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.struct_info import FuncStructInfo


def is_impure_call(call: Call) -> bool:
    """Whether this call may have a side effect, by its operator or its callee's purity."""
    if isinstance(call.op, Op):
        return call.op.get_attr("pure") is False or call.op.get_attr("FPurity") is False
    info = call.op.struct_info
    return not (isinstance(info, FuncStructInfo) and info.purity)


class _Impure(PyExprVisitor):
    def __init__(self, own: RelaxExpr | None) -> None:
        self.own = own
        self.found = False

    def visit_call_(self, op: Call) -> None:
        own = self.own is not None and op.op is self.own
        if not own and is_impure_call(op):
            self.found = True
        super().visit_call_(op)

    def visit_function_(self, op: Function) -> None:
        """A local function that is not called has no effect."""


def contains_impure_call(expr: Expr, own_name: RelaxExpr | None = None) -> bool:
    """Whether the expression (or a function's body) makes a call that may have a side effect.

    ``own_name`` is the variable of the function itself; recursive calls do not count as impure.
    """
    check = _Impure(own_name)
    check.visit_expr(expr.body if isinstance(expr, Function) else expr)
    return check.found


class _Callees(PyExprVisitor):
    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.found[op.name_hint] = None


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call each other (or themselves), sorted by name."""
    edges: dict[str, list[str]] = {}
    for gvar, func in mod.functions.items():
        callees = _Callees()
        if isinstance(func, Function):
            callees.visit_expr(func)
        edges[gvar.name_hint] = [name for name in callees.found if name in mod]
    reach = {name: _reachable(name, edges) for name in edges}
    groups: dict[tuple[str, ...], None] = {}
    for name in sorted(edges):
        if name in reach[name]:
            groups[tuple(sorted(n for n in reach[name] if name in reach[n]))] = None
    return [[mod.get_global_var(name) for name in group] for group in groups]


def _reachable(start: str, edges: dict[str, list[str]]) -> set[str]:
    reachable: set[str] = set()
    todo = list(edges[start])
    while todo:
        name = todo.pop()
        if name not in reachable:
            reachable.add(name)
            todo.extend(edges[name])
    return reachable
