"""Parts of a module that are compiled, and kept in the cache, each for itself.

A function that calls no other function of its module is a part. The functions that call are one
part: they see the others as declarations, which tell how each is called and what it does to its
arguments. So whoever edits a kernel has that kernel compiled again, and nothing else; and LLVM
works at one part while the next is lowered.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.codegen.join_objects import MOST_OBJECTS
from weft.ir.expr import GlobalVar, StringImm
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.runtime.call.spec import FunctionSpec
from weft.tir.expr import Call, is_call
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import DECLARED
from weft.tir.lowering.function_names import named_functions
from weft.tir.stmt import Evaluate


def parts_of(mod: IRModule) -> tuple[list[IRModule], IRModule | None]:
    """The functions that call no other one, each in a module, and a module of all those that do.

    The second is None where there are none of them.
    """
    functions = {v: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)}
    names = set(named_functions(mod))
    callers = {var: func for var, func in functions.items() if _calls_any(func, names)}
    leaves = {var: func for var, func in functions.items() if var not in callers}
    if len(leaves) > MOST_OBJECTS:
        return [], mod.with_(functions=functions)
    parts = [mod.with_(functions={var: func}) for var, func in leaves.items()]
    return parts, mod.with_(functions=callers) if callers else None


def _calls_any(func: PrimFunc, names: set[str]) -> bool:
    """Whether a function calls one of the module, by its GlobalVar or by its name."""
    for call in collect(func.body, Call):
        if isinstance(call.op, GlobalVar):
            return True
        if is_call(call, "call_extern") and isinstance(call.args[0], StringImm):
            if call.args[0].value in names:
                return True
    return False


def with_declarations(
    callers: IRModule, parts: Iterable[IRModule], specs: Iterable[FunctionSpec]
) -> IRModule:
    """The module of the callers, in which each function of the parts is declared."""
    known = {spec.name: spec for spec in specs}
    declared: dict[GlobalVar, PrimFunc] = {}
    for part in parts:
        (var,) = part.functions
        ((name, func),) = named_functions(part).items()
        declared[var] = declaration(func, known[name])
    return callers.with_(functions={**declared, **callers.functions})


def declaration(func: PrimFunc, spec: FunctionSpec) -> PrimFunc:
    """The function without its body; ``spec`` says what its code does."""
    written = [at for at, param in enumerate(spec.params) if param.is_output]
    unknown = [
        at
        for at, param in enumerate(spec.params)
        if param.kind == "handle" or (param.kind == "buffer" and param.is_output is None)
    ]
    told = {
        "written": written,
        "unknown": unknown,
        "returns": spec.ret or "",
        "launches": spec.launches,
    }
    return func.with_(body=Evaluate(0)).with_attr(DECLARED, told)
