"""Which memory a PrimFunc writes, whether it calls Python, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from weft.ir.functor import collect
from weft.ir.node import fact
from weft.ir.op import Op
from weft.ir.type import PrimType
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc

DECLARED: Final = "weft.declared"
"""The attribute of a function that is only declared: its body is compiled elsewhere, and it has an
empty one. The attribute tells what the function does: the positions of the parameters that it
writes and may write, the type that it returns, whether it launches parts of loops."""


@dataclass
class Effects:
    """The effects of a function's body. Memory is named by its data variable (its ``id``)."""

    written: set[int] = field(default_factory=set)
    """Memory that a store changes."""
    unknown: set[int] = field(default_factory=set)
    """Memory that a call is given, which may or may not change it."""
    calls_packed: bool = False
    """Whether it calls packed functions, which may be Python."""
    returned: DataType | None = None
    """The type of what ``T.ret`` returns."""


def effects_of(func: PrimFunc) -> Effects:
    """The effects of a function, from its stores and calls, or from its declaration."""
    return fact(func, "tir.effects", _effects_of)


def _effects_of(func: PrimFunc) -> Effects:
    if DECLARED in func.attrs:
        return _declared(func)
    effects = Effects()
    for node in collect(func.body, (s.BufferStore, e.Call)):
        if isinstance(node, s.BufferStore):
            effects.written.add(id(node.buffer.data))
        elif isinstance(node, e.Call):
            _add_call(effects, node)
    return effects


def _add_call(effects: Effects, call: e.Call) -> None:
    name = call.op.name if isinstance(call.op, Op) else ""
    effects.calls_packed = effects.calls_packed or name.endswith("packed")
    if name == "tir.ret":
        effects.returned = call.args[0].dtype
    for arg in call.args:
        if isinstance(arg, Buffer):
            effects.unknown.add(id(arg.data))
        elif isinstance(arg, e.Var) and arg.dtype.is_handle:
            effects.unknown.add(id(arg))
        elif isinstance(arg, BufferLoad) and name == "tir.address_of":
            effects.unknown.add(id(arg.buffer.data))


def _declared(func: PrimFunc) -> Effects:
    told = func.attrs[DECLARED]
    data = [param if buffer is None else buffer.data for param, buffer in _parameters(func)]
    return Effects(
        {id(data[at]) for at in told["written"]},
        {id(data[at]) for at in told["unknown"]},
        returned=DataType(told["returns"]) if told["returns"] else None,
    )


def _parameters(func: PrimFunc) -> list[tuple[e.Var, Buffer | None]]:
    return [(param, func.buffer_map.get(param)) for param in func.params]


def has_noalias(func: PrimFunc) -> bool:
    """Whether the function promises that its buffers do not overlap."""
    value = func.attrs.get("tir.noalias", False)
    return bool(getattr(value, "value", value))


def fixed_data(func: PrimFunc) -> frozenset[int]:
    """The data variables (by ``id``) whose memory nothing changes while the function runs.

    There are none where packed functions are called, or where something is written and buffers may
    overlap.
    """
    effects = effects_of(func)
    changed = effects.written | effects.unknown
    if effects.calls_packed or (changed and not has_noalias(func)):
        return frozenset()
    data = {id(buffer.data) for buffer in func.buffer_map.values()}
    return frozenset(data - changed)


def return_type(func: PrimFunc, effects: Effects) -> DataType | None:
    """The type that a function is declared to return, or else that of its ``T.ret``."""
    declared = func.ret_type
    if isinstance(declared, PrimType) and declared.dtype != "void":
        return declared.dtype
    return effects.returned
