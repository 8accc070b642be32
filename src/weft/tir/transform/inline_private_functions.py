"""InlinePrivateFunctions: the body of a function that only its module calls stands at each call.

Before: ``for i in range(8): Module.halve(T.address_of(A[i, 0]))``. After, in its place:
``data = T.address_of(A[i, 0])`` and the body of ``halve``, with variables and buffers of its own.

A function stays where it is if it has a name outside of the module, calls itself, returns a value,
takes buffers, has blocks (whose names would be there twice), or is for another target than its
caller; so does a call within an expression. What nothing calls any more is removed.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.structural import structural_equal
from weft.ir.transform import define_module_pass
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, Evaluate, LetStmt, Stmt
from weft.tir.stmt_functor import renew_defs
from weft.tir.transform.prim_func_pass import StmtMutator, rewrite_body

Functions = dict[GlobalVar, PrimFunc]


def inline_private_functions(mod: IRModule) -> IRModule:
    """The module with private functions inlined, or the same object."""
    functions = {var: func for var, func in mod.functions.items() if isinstance(func, PrimFunc)}
    inner = {var: func for var, func in functions.items() if _is_inlined(var, functions)}
    done: Functions = {}
    for var in functions:
        _inline_into(var, functions, inner, done)
    if all(done[var] is func for var, func in functions.items()):
        return mod
    changed = mod.clone()
    for var, func in done.items():
        changed[var] = func
    called = {var for func in changed.functions.values() for var in collect(func, GlobalVar)}
    for var in inner:
        if var not in called:
            del changed[var]
    return changed


def _is_inlined(var: GlobalVar, functions: Functions) -> bool:
    func = functions[var]
    if "global_symbol" in func.attrs or func.buffer_map or collect(func.body, Block):
        return False
    if any(is_call(call, "ret") for call in collect(func.body, Call)):
        return False
    reached: set[GlobalVar] = set()
    waiting = [var]
    while waiting:
        called = [v for v in _called(functions[waiting.pop()]) if v in functions]
        waiting += [v for v in called if v not in reached]
        reached.update(called)
    return var not in reached


def _called(func: PrimFunc) -> list[GlobalVar]:
    return [call.op for call in collect(func.body, Call) if isinstance(call.op, GlobalVar)]


def _inline_into(
    var: GlobalVar, functions: Functions, inner: Functions, done: Functions
) -> PrimFunc:
    """The function with those inlined that it calls, theirs first."""
    if var not in done:
        func = functions[var]
        done[var] = func  # a function that calls itself is not among the inner ones
        bodies = {v: _inline_into(v, functions, inner, done) for v in _called(func) if v in inner}
        if bodies:
            done[var] = rewrite_body(func, _Inline(func, bodies))
    return done[var]


class _Inline(StmtMutator):
    def __init__(self, caller: PrimFunc, bodies: Functions) -> None:
        self.target, self.bodies = caller.attrs.get("target"), bodies

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or call.op not in self.bodies:
            return stmt
        callee = self.bodies[call.op]
        if not structural_equal(callee.attrs.get("target"), self.target):
            return stmt
        callee = renew_defs(callee)
        given = dict(zip(callee.params, call.args, strict=True))
        fixed = {param: argument for param, argument in given.items() if _is_fixed(argument)}
        body = callee.specialize(fixed).body
        for param, argument in reversed(given.items()):
            if param not in fixed:
                body = LetStmt(param, argument, body)
        return body


def _is_fixed(argument: PrimExpr) -> bool:
    """Whether an argument has one value, whatever memory the body writes before it is needed."""
    parts: object = argument
    if is_call(argument, "address_of"):
        parts = expect(argument.args[0], BufferLoad).indices
    return not collect(parts, Call) and not collect(parts, BufferLoad)


InlinePrivateFunctions = define_module_pass("tir.InlinePrivateFunctions", inline_private_functions)
