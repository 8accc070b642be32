"""Which variables an expression uses and defines: graph, global and symbolic ones."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import post_order_visit
from weft.ir.node import Array, Node
from weft.ir.structural import structural_hash
from weft.relax.expr import Call, Function, MatchCast, Var, VarBinding
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.ir.lattice import defining_vars, symbolic_vars
from weft.relax.struct_info import StructInfo
from weft.tir.expr import Var as TirVar


class _Variables(PyExprVisitor):
    """Every variable used and defined, each once, in order."""

    def __init__(self) -> None:
        self.used: dict[Var, None] = {}
        self.bound: dict[Var, None] = {}
        self.met: dict[Var, None] = {}

    def visit_var_(self, op: Var) -> None:
        self.used[op] = self.met[op] = None

    def visit_var_def_(self, var: Var) -> None:
        self.bound[var] = self.met[var] = None


def _variables(expr: RelaxExpr) -> _Variables:
    variables = _Variables()
    variables.visit_expr(expr)
    return variables


def all_vars(expr: RelaxExpr) -> Array[Var]:
    """All graph variables, used or defined, in order of first appearance."""
    return Array(_variables(expr).met)


def bound_vars(expr: RelaxExpr) -> Array[Var]:
    """The graph variables that parameters and bindings define."""
    return Array(_variables(expr).bound)


def free_vars(expr: RelaxExpr) -> Array[Var]:
    """The graph variables that are used and not defined inside of ``expr``."""
    variables = _variables(expr)
    return Array([var for var in variables.used if var not in variables.bound])


class _Globals(PyExprVisitor):
    def __init__(self) -> None:
        self.all: dict[GlobalVar, None] = {}
        self.called: dict[GlobalVar, None] = {}

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.all[op] = None

    def visit_call_(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            self.called[op.op] = None
        super().visit_call_(op)


def all_global_vars(expr: RelaxExpr) -> Array[GlobalVar]:
    """All references to functions of the module."""
    functions = _Globals()
    functions.visit_expr(expr)
    return Array(functions.all)


def called_global_vars(expr: RelaxExpr) -> Array[GlobalVar]:
    """The functions of the module that are called directly (call_tir is no such call)."""
    functions = _Globals()
    functions.visit_expr(expr)
    return Array(functions.called)


def _symbol_uses(func: Function) -> tuple[dict[TirVar, None], dict[TirVar, None]]:
    """(symbols used, symbols defined) anywhere in a function."""
    used: dict[TirVar, None] = {}
    defined: dict[TirVar, None] = {}

    def use(value: object) -> None:
        for var in symbolic_vars(value):
            used[var] = None

    def define(params: Sequence[Var]) -> None:
        for param in params:
            for var in defining_vars(param.struct_info):
                defined[var] = None
            use(param.struct_info)

    def visit(item: Node) -> None:
        if isinstance(item, Function):
            define(item.params)
        elif isinstance(item, MatchCast):
            for var in defining_vars(item.struct_info):
                defined[var] = None
            use(item.struct_info)
        elif isinstance(item, VarBinding) and item.var.struct_info is not None:
            use(item.var.struct_info)
        elif isinstance(item, Call):
            use(item.sinfo_args)
            use(item.args)

    define(func.params)
    post_order_visit(func.body, visit)
    use(func.ret_struct_info)
    return used, defined


def tir_vars_in_struct_info(info: StructInfo) -> Array[TirVar]:
    """The symbolic variables in a struct info, each once."""
    return Array(dict.fromkeys(symbolic_vars(info)))


def definable_tir_vars_in_struct_info(info: StructInfo) -> Array[TirVar]:
    """The symbolic variables that a parameter of this struct info defines."""
    return Array(defining_vars(info))


def collect_non_negative_expressions(info: StructInfo) -> Array[PrimExpr]:
    """The extents in a struct info that are no constants: none of them can be negative."""
    extents: dict[int, PrimExpr] = {}

    def visit(item: Node) -> None:
        for value in getattr(item, "values", None) or ():
            if not isinstance(value, IntImm):
                extents.setdefault(structural_hash(value), value)

    post_order_visit(info, visit)
    return Array(extents.values())


def defined_symbolic_vars(func: Function | StructInfo) -> Array[TirVar]:
    """The symbolic variables that parameters and match_casts (or a struct info) define."""
    if isinstance(func, StructInfo):
        return Array(defining_vars(func))
    return Array(_symbol_uses(func)[1])


def free_symbolic_vars(func: Function | StructInfo) -> Array[TirVar]:
    """The symbolic variables that are used and defined nowhere inside."""
    if isinstance(func, StructInfo):
        bound = defining_vars(func)
        return Array([var for var in symbolic_vars(func) if var not in bound])
    used, defined = _symbol_uses(func)
    return Array([var for var in used if var not in defined])
