"""LambdaLift: local functions become functions of the module.

Before: ``main(x, y): def inner(z): return R.add(z, x); a = inner(y)``. After: a private
``main_inner(z, x): return R.add(z, x)`` and ``main(x, y): inner = R.make_closure(main_inner, (x,));
a = R.invoke_pure_closure(inner, (y,))``. A function that captures nothing is called by its name.

What a function captures becomes parameters at its end: its free variables, and, as one shape, the
symbolic variables that only the outer function defines. A recursive function passes the captured
values on to itself (Johnsson, "Lambda lifting", 1985).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.analysis.purity import is_impure_call
from weft.relax.analysis.variables import free_symbolic_vars, free_vars
from weft.relax.expr import Call, Expr, Function, ShapeExpr, Tuple, Var, VarBinding
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.op.base import invoke_closure, invoke_pure_closure, make_closure
from weft.relax.struct_info import FuncStructInfo, ShapeStructInfo
from weft.relax.utils import copy_with_new_vars


class _Locations(PyExprVisitor):
    """The path of each local function: the names from the module's function down to it."""

    def __init__(self, name: str) -> None:
        self.path = [name]
        self.found: dict[Var, tuple[Function, tuple[str, ...]]] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        if not isinstance(binding.value, Function):
            self.visit_expr(binding.value)
            return
        self.path.append(binding.var.name_hint)
        self.found[binding.var] = (binding.value, tuple(self.path))
        self.visit_expr(binding.value)
        self.path.pop()


def _lifted_names(mod: IRModule) -> dict[Var, str]:
    """A name for each local function: the first of these that is unique.

    Its ``global_symbol``; the outermost function's name and its own; all names on its path; the
    outermost function's name, its own, and a number.
    """
    remaining: dict[Var, tuple[Function, tuple[str, ...]]] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            locations = _Locations(gvar.name_hint)
            locations.visit_expr(func)
            remaining.update(locations.found)
    taken = {gvar.name_hint for gvar in mod.functions}
    counts: Counter[str] = Counter()

    def numbered(path: tuple[str, ...]) -> str:
        name = f"{path[0]}_{path[-1]}"
        counts[name] += 1
        while f"{name}_{counts[name] - 1}" in taken:
            counts[name] += 1
        return f"{name}_{counts[name] - 1}"

    proposals: tuple[Callable[[Function, tuple[str, ...]], str | None], ...] = (
        lambda func, path: func.attrs.get("global_symbol"),
        lambda func, path: f"{path[0]}_{path[-1]}",
        lambda func, path: "_".join(path) if len(path) > 2 else None,
        lambda func, path: numbered(path),
    )
    names: dict[Var, str] = {}
    for propose in proposals:
        proposed = {var: propose(*where) for var, where in remaining.items()}
        votes = Counter(proposed.values())
        for var, name in proposed.items():
            if name is not None and votes[name] == 1 and name not in taken:
                names[var] = str(name)
                del remaining[var]
        taken.update(names.values())
    return names


@dataclass
class _Lifted:
    """A local function that is lifted: its new name, its captures, and the parameters for them."""

    own: Var
    gvar: GlobalVar
    captured: list[Expr] = field(default_factory=list)
    params: list[Var] = field(default_factory=list)
    sources: list[Var] = field(default_factory=list)

    def closure(self, values: Sequence[RelaxExpr]) -> Call:
        """The closure over ``values``."""
        return make_closure(self.gvar, Tuple(values))


class _Lifter(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.names = _lifted_names(mod)
        self.lifted: dict[GlobalVar, Function] = {}
        self.closures: set[Var] = set()
        self.current: _Lifted | None = None

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Function):
            self.lift(binding, value)
            return
        if isinstance(value, Call) and isinstance(value.struct_info, FuncStructInfo):
            self.closures.add(binding.var)  # a call that returns a function returns a closure
        elif isinstance(value, Var) and value in self.closures:
            self.closures.add(binding.var)
        super().visit_var_binding_(binding)

    def lift(self, binding: VarBinding, func: Function) -> None:
        """Move a local function to the module; bind a closure if it captures anything."""
        job = _Lifted(binding.var, GlobalVar(self.names[binding.var]))
        self.capture(job, func)
        params = [*func.params, *job.params]
        info = expect(func.struct_info, FuncStructInfo)
        job.gvar.struct_info = FuncStructInfo(
            [param.struct_info for param in params], info.ret, func.is_pure
        )
        if job.captured:
            self.closures.add(binding.var)
        else:
            self.set_var_remap(binding.var, job.gvar)
        lifted = copy_with_new_vars(self.body_of(job, func, params))
        job.gvar.struct_info = lifted.struct_info
        self.lifted[job.gvar] = lifted
        if job.captured:
            closure = self.builder_.normalize(job.closure(job.captured))
            self.reemit(binding, binding.var, closure)

    def capture(self, job: _Lifted, func: Function) -> None:
        """Find what a function captures: variables, then symbols as one shape."""
        for var in free_vars(func):
            now = None if var is job.own else self.visit_expr(var)
            if not isinstance(now, Var):
                continue  # the function itself, or one that has been lifted without captures
            job.sources.append(var)
            job.captured.append(now)
            job.params.append(Var(var.name_hint, now.struct_info))
        seen = Function([*func.params, *job.params], func.body, func.ret_struct_info, func.is_pure)
        symbols = free_symbolic_vars(seen)
        if symbols:
            job.captured.append(ShapeExpr(symbols))
            job.params.append(Var("symbols", ShapeStructInfo(symbols)))

    def body_of(self, job: _Lifted, func: Function, params: list[Var]) -> Function:
        """The lifted function; the local functions in it are lifted as well."""
        outer = {var: self.get_var_remap(var.vid) for var in job.sources}
        self._var_remap.update(zip(job.sources, job.params, strict=False))
        enclosing, self.current = self.current, job
        body = self.visit_with_new_scope(func.body, params)
        self.current = enclosing
        self._var_remap.update(outer)
        return Function(params, body, body.struct_info, func.is_pure, func.attrs, func.span)

    def is_own(self, callee: RelaxExpr) -> bool:
        """Whether the callee is the function that is being lifted, and captures values."""
        job = self.current
        return job is not None and callee is job.own and bool(job.captured)

    def visit_var_(self, op: Var) -> RelaxExpr:
        if self.current is not None and self.is_own(op):
            return self.builder_.emit(self.current.closure(self.current.params), op.name_hint)
        return super().visit_var_(op)

    def visit_call_(self, op: Call) -> RelaxExpr:
        if self.current is not None and self.is_own(op.op):
            args = [*(self.visit_expr(arg) for arg in op.args), *self.current.params]
            return Call(self.current.gvar, args, op.attrs, op.sinfo_args, op.span)
        call = expect(super().visit_call_(op), Call)
        if not isinstance(op.op, Var) or op.op not in self.closures:
            return call
        invoke = invoke_closure if is_impure_call(op) else invoke_pure_closure
        return invoke(call.op, Tuple(call.args), op.struct_info)


def lambda_lift(mod: IRModule) -> IRModule:
    """The module without local functions; the same object if there are none."""
    lifter = _Lifter(mod)
    if not lifter.names:
        return mod
    functions: dict[GlobalVar, BaseFunc] = {
        gvar: lifter.visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return IRModule({**functions, **lifter.lifted}, None, mod.attrs, mod.global_infos)


LambdaLift = define_module_pass("LambdaLift", lambda_lift, opt_level=1)
