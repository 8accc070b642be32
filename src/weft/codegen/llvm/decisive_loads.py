"""Loads on whose values it depends where a program goes and which memory it accesses.

To LLVM, memory that nothing was stored to holds no number at all: each use of it may see another
one, and a jump that depends on it may go anywhere, past the test of an index too. ``freeze`` makes
one number of it. That is no instruction of the processor, but LLVM then knows less of the value: so
loads that are only data go without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.node import Node, summary_of
from weft.ir.summary import bits_of, identities
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.faults import DIVISIONS

_ADDRESSES: Final = ("tvm_access_ptr", "is_exact")
_KINDS: Final = (
    s.IfThenElse, s.While, s.AssertStmt, s.For, s.Allocate, s.BufferStore, s.LetStmt,
    BufferLoad, e.Let, e.Call, *DIVISIONS,
)  # fmt: skip


def decisive_loads(body: s.Stmt) -> set[int]:
    """The loads of a function (by ``id``) that decide, also through variables.

    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    ...     B[A[0]] = B[1]
    >>> loads = collect(f.body, BufferLoad)
    >>> [load for load in loads if id(load) in decisive_loads(f.body)]
    [A[0]]
    """
    nodes = collect(body, _KINDS)
    lets = [node for node in nodes if isinstance(node, (s.LetStmt, e.Let))]
    values = {id(let.var): let.value for let in lets}
    bits = bits_of(BufferLoad) | identities([let.var for let in lets])  # of what leads to a load
    waiting: list[Node] = [part for node in nodes for part in _deciding(node)]
    seen: set[int] = set()
    loads: set[int] = set()
    while waiting:
        node = waiting.pop()
        if not (node._summary or summary_of(node)) & bits or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, BufferLoad):
            loads.add(id(node))
        elif id(node) in values:
            waiting.append(values[id(node)])
        waiting += node._parts_()
    return loads


def _deciding(node: Node) -> Iterator[PrimExpr]:
    """The expressions right below a node on whose values it depends what happens next."""
    if isinstance(node, (s.IfThenElse, s.While, s.AssertStmt)):
        yield node.condition
    elif isinstance(node, s.For):
        yield from (node.min, node.extent)
    elif isinstance(node, s.Allocate):
        yield from node.extents
    elif isinstance(node, (BufferLoad, s.BufferStore)):
        yield from node.indices
        yield from _layout(node.buffer)
        if node.predicate is not None:
            yield node.predicate
    elif isinstance(node, DIVISIONS):
        yield from (node.a, node.b)
    elif isinstance(node, e.Call):
        yield from _deciding_arguments(node)


def _layout(buffer: Buffer) -> Iterator[PrimExpr]:
    yield from (*buffer.shape, *buffer.strides)
    if buffer.elem_offset is not None:
        yield buffer.elem_offset


def _deciding_arguments(call: e.Call) -> Iterator[PrimExpr]:
    if is_call(call, "if_then_else"):
        yield call.args[0]
    elif is_call(call, "checked"):
        yield call.args[1]
    elif effect_of(call) >= CallEffectKind.UpdateState or any(
        is_call(call, name) for name in _ADDRESSES
    ):
        yield from [arg for arg in call.args if isinstance(arg, PrimExpr)]
