"""What a PrimFunc does to the memory of its parameters, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.ir.functor import collect
from weft.ir.op import Op
from weft.ir.type import PrimType
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc


@dataclass
class Effects:
    """The effects of a function's body; data variables are given by ``id``."""

    written: set[int] = field(default_factory=set)
    """Data that a store changes."""
    unknown: set[int] = field(default_factory=set)
    """Data that a call is given, which may change it."""
    calls_packed: bool = False
    """Whether Python is called."""
    returned: DataType | None = None
    """The type of what ``T.ret`` returns."""


def effects_of(func: PrimFunc) -> Effects:
    """The effects of a function, read off its stores and calls."""
    effects = Effects()
    node: Any
    for node in collect(func.body, (s.BufferStore, e.Call)):
        if isinstance(node, s.BufferStore):
            effects.written.add(id(node.buffer.data))
            continue
        name = node.op.name if isinstance(node.op, Op) else ""
        effects.calls_packed = effects.calls_packed or name.endswith("packed")
        if name == "tir.ret":
            effects.returned = node.args[0].dtype
        for arg in node.args:
            if isinstance(arg, Buffer):
                effects.unknown.add(id(arg.data))
            elif isinstance(arg, e.Var) and arg.dtype.is_handle:
                effects.unknown.add(id(arg))
            elif isinstance(arg, BufferLoad) and name == "tir.address_of":
                effects.unknown.add(id(arg.buffer.data))
    return effects


def has_noalias(func: PrimFunc) -> bool:
    """Whether the function promises that its buffers do not overlap."""
    value = func.attrs.get("tir.noalias", False)
    return bool(getattr(value, "value", value))


def fixed_data(func: PrimFunc) -> frozenset[int]:
    """The data variables (by ``id``) whose memory stays as it is while the function runs."""
    effects = effects_of(func)
    changed = effects.written | effects.unknown
    if effects.calls_packed or (changed and not has_noalias(func)):
        return frozenset()
    data = {id(buffer.data) for buffer in func.buffer_map.values()}
    return frozenset(data - changed)


def return_type(func: PrimFunc, effects: Effects) -> DataType | None:
    """The type that a function declares to return, or else that of its ``T.ret``."""
    declared = func.ret_type
    if isinstance(declared, PrimType) and declared.dtype != "void":
        return declared.dtype
    return effects.returned
