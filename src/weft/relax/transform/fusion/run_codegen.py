"""RunCodegen: lets backends compile the functions marked for them, and rewrites the calls.

Before::

    gv = cls.fused_conv2d_relu_dnnl(data, w)      # a function with the attribute Codegen "dnnl"

After::

    gv = R.call_dps_packed("fused_conv2d_relu_dnnl", (data, w), out_sinfo=R.Tensor(...))

and the module's attribute ``external_mods`` has the list of runtime modules that the backend
returned. A backend "dnnl" is the registered function ``relax.ext.dnnl``. It is called once, with
the list of its functions, its options, and a map from their constants to names. A runtime module
has a function for each ``global_symbol``, which is called with the arguments followed by memory for
the results. ``relax.build`` links the modules. The constants are in the module's attribute
``const_name_to_constant``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax.expr import Call, Constant, ExternFunc, Function, Tuple
from weft.relax.expr_functor import PyExprMutator
from weft.relax.transform.graph.dead_code_elimination import eliminate_dead_code
from weft.runtime.module import Module
from weft.runtime.registry import get_global_func, missing_function
from weft.support.errors import PassError


def run_codegen(
    mod: IRModule,
    target_options: Mapping[str, Mapping[str, object]] | None = None,
    entry_functions: Sequence[str] | None = None,
) -> IRModule:
    """The module with marked functions compiled; ``mod`` if there are none."""
    entries = list(entry_functions or ())
    for name in entries:
        if name not in mod:
            raise PassError(f"RunCodegen: the module has no function {name!r}")
    marked = dict(_marked_functions(mod))
    if not marked:
        return mod
    names = _constant_names(marked)
    compiled: list[Module] = []
    for backend, functions in _by_backend(marked).items():
        options = dict((target_options or {}).get(backend, {}))
        compiled.extend(_compiled(backend, functions, options, names))
    redirected = _Redirection(mod, marked).run()
    earlier = mod.attrs.get("external_mods") or ()
    attrs = {**redirected.attrs, "external_mods": [*earlier, *compiled]}
    if names:
        attrs["const_name_to_constant"] = {name: c.data for c, name in names.items()}
    return eliminate_dead_code(redirected.with_attrs(attrs), entries or None)


def _marked_functions(mod: IRModule) -> Iterator[tuple[GlobalVar, Function]]:
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and func.attrs.get("Codegen") is not None:
            if "global_symbol" not in func.attrs:
                func = func.with_attr("global_symbol", gvar.name_hint)
            yield gvar, func


def _by_backend(marked: Mapping[GlobalVar, Function]) -> dict[str, list[Function]]:
    by_backend: dict[str, list[Function]] = {}
    for func in marked.values():
        by_backend.setdefault(str(func.attrs["Codegen"]), []).append(func)
    return by_backend


def _constant_names(marked: Mapping[GlobalVar, Function]) -> dict[Constant, str]:
    """Constant -> its name, made of function, backend and a number."""
    names: dict[Constant, str] = {}
    for func in marked.values():
        prefix = f"{func.attrs['global_symbol']}_{func.attrs['Codegen']}_const"
        for index, constant in enumerate(collect(func.body, Constant)):
            names.setdefault(constant, f"{prefix}_{index}")
    return names


def _compiled(
    backend: str,
    functions: list[Function],
    options: Mapping[str, object],
    names: dict[Constant, str],
) -> list[Module]:
    """The runtime modules of a backend; raises if one of its functions is missing in them."""
    registered = f"relax.ext.{backend}"
    codegen = get_global_func(registered, allow_missing=True)
    if codegen is None:
        raise PassError(f"RunCodegen: no backend {backend!r}: {missing_function(registered)}")
    runtimes = codegen(functions, options, names)
    modules = list(runtimes) if isinstance(runtimes, Sequence) else [runtimes]
    for module in modules:
        if not isinstance(module, Module):
            raise PassError(
                f"RunCodegen: expected {registered} to return a list of runtime modules, got one "
                f"with {type(module).__name__}"
            )
    for func in functions:
        symbol = str(func.attrs["global_symbol"])
        if not any(module.implements_function(symbol, True) for module in modules):
            raise PassError(
                f"RunCodegen: expected {registered} to return a module with the function "
                f"{symbol!r}, none has it"
            )
    return modules


class _Redirection(PyExprMutator):
    """Replaces calls of marked functions by calls of compiled ones, and removes the functions."""

    def __init__(self, mod: IRModule, marked: Mapping[GlobalVar, Function]) -> None:
        super().__init__(mod)
        self.mod, self.marked = mod, marked

    def run(self) -> IRModule:
        """The module without marked functions."""
        functions: dict[GlobalVar, BaseFunc] = {}
        for gvar, func in self.mod.functions.items():
            if gvar not in self.marked:
                functions[gvar] = self.visit_expr(func) if isinstance(func, Function) else func
        return IRModule(functions, None, self.mod.attrs, self.mod.global_infos)

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        func = self.marked.get(call.op) if isinstance(call.op, GlobalVar) else None
        if func is None:
            return call
        callee = ExternFunc(str(func.attrs["global_symbol"]))
        dps = Op.get("relax.call_dps_packed")
        return Call(dps, [callee, Tuple(call.args)], None, [op.struct_info])


RunCodegen = define_module_pass("RunCodegen", run_codegen)
