"""Parts of a program that native code could only trust: programs with them are not compiled.

Accesses are tested against the memory of their buffer, which is known by its data variable. So
pointers are not computed or stored, except raw ones, which C gives. Lowering writes intrinsics,
attributes and annotations of its own, on which it relies; programs do not have them. Calls of
PrimFuncs form no circle and no long chain: nothing would test how much of the stack is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weft.ir.expr import GlobalVar, StringImm
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.op import Op
from weft.support.errors import UnsupportedError
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import DECLARED
from weft.tir.lowering.facts import RANGE
from weft.tir.lowering.function_names import named_functions
from weft.tir.lowering.outline_launches import LAUNCHED, RANGES

_OWN_ATTRS: Final = (DECLARED, LAUNCHED, RANGES)
_OWN_CALLS: Final = ("tir.launch", "tir.table_get", "tir.unchecked_cast")
_FOREIGN: Final = frozenset(
    f"tir.{name}"
    for name in (
        "call_extern call_pure_extern call_packed tvm_call_packed call_cpacked tvm_call_cpacked "
        "call_llvm_intrin call_llvm_pure_intrin reinterpret tvm_struct_get tvm_stack_alloca"
    ).split()
)
"""Intrinsics that give raw pointers."""
_MAX_DEPTH: Final = 100
"""Of calls of PrimFuncs: each may take 32 KiB of a stack of 8 MiB for small buffers."""
_KINDS: Final = (s.LetStmt, s.BufferStore, s.For, e.Let, e.Select, e.Call)


def refuse_trusted_parts(mod: IRModule) -> None:
    """Raise UnsupportedError if a PrimFunc of a module has a part that cannot be tested.

    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((4,), "int32"), n: T.int32):
    ...     with T.LetStmt(T.address_of(A[n])) as p:
    ...         B = T.Buffer((4,), "int32", data=p)
    ...         B[0] = 1
    >>> refuse_trusted_parts(IRModule({"f": f}))
    Traceback (most recent call last):
    ...
    weft.support.errors.UnsupportedError: f: expected no pointer that is computed, got one in the...
    """
    functions = named_functions(mod)
    for name, func in functions.items():
        _refuse_attrs(func, name)
        for node in collect(func.body, _KINDS):
            _refuse_node(node, name)
        for callee, args in _calls(func, functions):
            _refuse_raw_arguments(func, name, callee, functions[callee], args)
    _refuse_nested_calls(functions)


def _refuse_attrs(func: PrimFunc, name: str) -> None:
    for attr in _OWN_ATTRS:
        if attr in func.attrs:
            raise UnsupportedError(
                f"{name}: the attribute {attr} is for lowering itself, which relies on it; "
                "remove it"
            )


def _refuse_node(node: Node, name: str) -> None:
    if isinstance(node, s.For):
        if RANGE in (node.annotations or {}):
            raise UnsupportedError(
                f"{name}: the annotation {RANGE} of the loop {node.loop_var.name} is for lowering "
                "itself, which relies on it; remove it"
            )
        return
    if isinstance(node, e.Call) and isinstance(node.op, Op) and node.op.name in _OWN_CALLS:
        raise UnsupportedError(
            f"{name}: {node.op.name} is for lowering itself, which relies on its arguments"
        )
    if is_call(node, "tvm_stack_make_array"):
        raise UnsupportedError(
            f"{name}: T.tvm_stack_make_array: whether the memory is as large as the array is not "
            "known; pass a buffer instead: T.call_packed(name, A), or a view T.decl_buffer(...)"
        )
    what = _computed_pointer(node)
    if what is not None:
        raise UnsupportedError(
            f"{name}: expected no pointer that is computed, got one in {what}: which memory it "
            "points to is not known; declare a view instead: T.decl_buffer(shape, dtype, "
            "data=A.data, elem_offset=n)"
        )


def _computed_pointer(node: Node) -> str | None:
    """Where a node names, stores or chooses a pointer that may be one into a buffer; else None."""
    if isinstance(node, (s.LetStmt, e.Let)) and node.var.dtype.is_handle:
        return None if _is_foreign(node.value) else f"the value of {node.var.name}"
    if isinstance(node, s.BufferStore) and node.value.dtype.is_handle:
        return f"a store to {node.buffer.name}"
    if isinstance(node, e.Select) or is_call(node, "if_then_else"):
        return "a choice" if node.dtype.is_handle else None
    return None


def _is_foreign(value: Node) -> bool:
    return isinstance(value, e.Call) and isinstance(value.op, Op) and value.op.name in _FOREIGN


def _refuse_raw_arguments(
    caller: PrimFunc, name: str, callee: str, func: PrimFunc, args: Sequence[Node]
) -> None:
    """Refuse memory of buffers for a parameter that is a raw pointer: its size would be lost."""
    for param, arg in zip(func.params, args, strict=False):
        if not param.dtype.is_handle or param in func.buffer_map or _is_foreign(arg):
            continue
        if is_call(arg, "tvm_access_ptr"):
            arg = arg.args[1]
        if not any(arg is own and own not in caller.buffer_map for own in caller.params):
            raise UnsupportedError(
                f"{name}: {callee} takes {param.name} as a raw pointer, of whose memory the size "
                f"is not known; make a buffer of it: A = T.match_buffer({param.name}, shape, dtype)"
            )


def _refuse_nested_calls(functions: dict[str, PrimFunc]) -> None:
    callees = {
        name: [callee for callee, _ in _calls(func, functions)] for name, func in functions.items()
    }
    depths: dict[str, int] = {}
    for name in callees:
        _depth(name, callees, [], depths)


def _depth(
    name: str, callees: dict[str, list[str]], path: list[str], depths: dict[str, int]
) -> int:
    """How many functions run at once below a call of one, itself among them."""
    if name in path:
        circle = " -> ".join([*path[path.index(name) :], name])
        raise UnsupportedError(
            f"expected PrimFuncs that do not call themselves, got {circle}; write a loop, or a "
            "graph function (R.function), whose calls are counted"
        )
    path.append(name)
    if name not in depths and len(path) <= _MAX_DEPTH:
        below = [_depth(callee, callees, path, depths) for callee in callees[name]]
        depths[name] = 1 + max(below, default=0)
    if len(path) - 1 + depths.get(name, 1) > _MAX_DEPTH:
        raise UnsupportedError(
            f"{path[0]}: expected calls of PrimFuncs that are nested at most {_MAX_DEPTH} deep, "
            "since each takes a part of the stack; join some of them"
        )
    path.pop()
    return depths[name]


def _calls(func: PrimFunc, functions: dict[str, PrimFunc]) -> Iterator[tuple[str, Sequence[Node]]]:
    """The functions of the module that a function calls, with the arguments."""
    for call in collect(func.body, e.Call):
        if isinstance(call.op, GlobalVar) and call.op.name_hint in functions:
            yield call.op.name_hint, call.args
        elif is_call(call, "call_extern") and isinstance(call.args[0], StringImm):
            if call.args[0].value in functions:
                yield call.args[0].value, call.args[1:]
