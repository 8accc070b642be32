"""Well-formedness of graph programs: what every pass may rely on.

Variables are defined once and before use; dataflow variables stay in their block; arguments are
leaves; every expression has struct info; symbols are defined by parameters or match_casts;
a variable, its value and the callee's signature agree; referenced functions exist; pure functions
and dataflow blocks make no impure call.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.relax.analysis.bindings import functions_of
from weft.relax.analysis.kernel_call import KERNEL_CALLS, kernel_call_problem
from weft.relax.analysis.purity import is_impure_call
from weft.relax.analysis.types import binding_problem
from weft.relax.analysis.variables import free_symbolic_vars
from weft.relax.builder.normalize import is_leaf
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.support.errors import VerifyError
from weft.support.recursion import deep_recursion


def well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Whether a module or function is well formed; ``find_problem`` says what is not."""
    return find_problem(obj, check_struct_info) is None


def verify_well_formed(obj: IRModule | Function) -> None:
    """Raise VerifyError with the first problem."""
    problem = find_problem(obj)
    if problem is not None:
        raise VerifyError(problem)


@deep_recursion
def find_problem(obj: IRModule | Function, check_struct_info: bool = True) -> str | None:
    """The first problem as a text, or None."""
    module = obj if isinstance(obj, IRModule) else None
    for gvar, func in functions_of(obj):
        if not isinstance(func, Function):
            return f"expected a graph function or a module, got {type(func).__name__}"
        symbol = func.attrs.get("global_symbol")
        if gvar is not None and symbol not in (None, gvar.name_hint):
            return (
                f"{gvar.name_hint}: its global_symbol is {str(symbol)!r}, expected its name; "
                "relax.transform.NormalizeGlobalVar renames it"
            )
        checker = _Checker(module, check_struct_info)
        checker.function(func)
        if checker.problem is None:
            checker.symbols(func)
        if checker.problem is not None:
            name = getattr(gvar, "name_hint", func.attrs.get("global_symbol", "function"))
            return f"{name}: {checker.problem}"
    return None


class _Checker:
    def __init__(self, module: IRModule | None, check_struct_info: bool) -> None:
        self.module = module
        self.check_struct_info = check_struct_info
        self.problem: str | None = None
        self.ever: set[Var] = set()
        self.visible: set[Var] = set()
        self.is_pure = True

    def fail(self, text: str) -> None:
        if self.problem is None:
            self.problem = text

    def define(self, var: Var) -> None:
        if var in self.ever:
            self.fail(f"variable {var.name_hint} is defined twice")
        self.ever.add(var)
        self.visible.add(var)
        if self.check_struct_info and var.struct_info is None:
            self.fail(f"variable {var.name_hint} has no struct info")

    def function(self, func: Function) -> None:
        outer_visible, outer_pure = set(self.visible), self.is_pure
        self.is_pure = func.is_pure and not func.attrs.get("relax.force_pure", False)
        for param in func.params:
            if isinstance(param, DataflowVar):
                self.fail(f"parameter {param.name_hint} is a dataflow variable")
            self.define(param)
        if not isinstance(func.body, SeqExpr):
            self.fail("the body is no SeqExpr; normalise the function")
        else:
            self.sequence(func.body)
        self.visible, self.is_pure = outer_visible, outer_pure

    def symbols(self, func: Function) -> None:
        free = free_symbolic_vars(func)
        if free and self.check_struct_info:
            self.fail(f"symbolic variable {free[0].name} is defined by no parameter or match_cast")

    def sequence(self, seq: SeqExpr) -> None:
        for block in seq.blocks:
            self.block(block)
        if not isinstance(seq.body, Function):
            self.operand(seq.body, "the result")

    def block(self, block: BindingBlock) -> None:
        in_dataflow = isinstance(block, DataflowBlock)
        inner: list[Var] = []
        for binding in block.bindings:
            self.binding(binding, in_dataflow)
            if isinstance(binding.var, DataflowVar):
                inner.append(binding.var)
                if not in_dataflow:
                    self.fail(
                        f"dataflow variable {binding.var.name_hint} is defined outside of a "
                        "dataflow block"
                    )
        self.visible.difference_update(inner)

    def binding(self, binding: Binding, in_dataflow: bool) -> None:
        if isinstance(binding.value, Function):
            self.define(binding.var)
            self.function(binding.value)
            return
        if isinstance(binding, MatchCast):
            self.operand(binding.value, f"the value of {binding.var.name_hint}")
        else:
            self.value(binding.value, binding.var, in_dataflow)
        problem = binding_problem(binding, self.module) if self.check_struct_info else None
        if problem is not None:
            self.fail(problem)
        self.define(binding.var)

    def value(self, value: RelaxExpr, var: Var, in_dataflow: bool) -> None:
        what = f"the value of {var.name_hint}"
        if isinstance(value, Call):
            self.call(value, what, in_dataflow)
        elif isinstance(value, If):
            if in_dataflow:
                self.fail(f"{what}: a dataflow block cannot branch")
            self.operand(value.cond, f"the condition of {var.name_hint}")
            for branch in (value.true_branch, value.false_branch):
                before = set(self.visible)
                if isinstance(branch, SeqExpr):
                    self.sequence(branch)
                else:
                    self.fail(f"{what}: a branch is no SeqExpr; normalise the function")
                self.visible = before
        elif isinstance(value, TupleGetItem):
            self.operand(value.tuple_value, what)
        elif isinstance(value, SeqExpr):
            self.fail(f"{what} is a nested sequence; normalise the function")
        else:
            self.operand(value, what)

    def call(self, call: Call, what: str, in_dataflow: bool) -> None:
        if self.check_struct_info and call.struct_info is None:
            self.fail(f"{what} has no struct info; normalise the function")
        self.operand(call.op, what)
        for arg in call.args:
            self.operand(arg, what)
        if self.module is not None and getattr(call.op, "name", "") in KERNEL_CALLS:
            problem = kernel_call_problem(call, self.module) if self.check_struct_info else None
            if problem is not None:
                self.fail(f"{what}: {problem}")
        if (self.is_pure or in_dataflow) and is_impure_call(call):
            where = "a dataflow block" if in_dataflow else "a pure function"
            name = getattr(call.op, "name", getattr(call.op, "name_hint", None))
            name = name or getattr(call.op, "global_symbol", "a closure")
            self.fail(f"{what}: {name} has side effects, which {where} must not have")

    def operand(self, expr: RelaxExpr, what: str) -> None:
        if isinstance(expr, Tuple):
            for item in expr.fields:
                self.operand(item, what)
        elif isinstance(expr, Var):
            if expr not in self.visible:
                reason = "used outside of its block" if expr in self.ever else "not defined"
                self.fail(f"{what}: variable {expr.name_hint} is {reason}")
        elif isinstance(expr, GlobalVar):
            if self.module is not None and expr not in self.module:
                self.fail(f"{what}: the module has no function {expr.name_hint}")
        elif not is_leaf(expr):
            self.fail(f"{what}: a {type(expr).__name__} stands as an argument; normalise it first")
