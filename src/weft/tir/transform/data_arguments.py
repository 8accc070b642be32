"""Marks integer arguments that are data: their arithmetic may overflow, as buffer elements' may.

    def f(n: T.int32, B: T.Buffer((1,), "bool")): B[0] = n + 1 > n     # False for n = 2**31 - 1

An argument that occurs in no index, extent or shape is data: it is replaced by a variable that
``arith.data.has_data`` recognises. For other arguments (sizes, offsets) and for loop variables,
simplification assumes that arithmetic does not overflow; indices computed from them are checked
against the extents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.arith.data import data_variable, has_data
from weft.arith.facts import is_index
from weft.ir.functor import collect, substitute
from weft.ir.node import Node
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AttrStmt, BlockRealize, BufferRealize, BufferStore, For

_INDEXING: Final[dict[type[Node], tuple[str, ...]]] = {
    BufferLoad: ("indices",), BufferStore: ("indices",), For: ("min", "extent"),
    BlockRealize: ("iter_values",), IterVar: ("dom",), Allocate: ("extents",),
    AttrStmt: ("value",), BufferRealize: ("bounds",), BufferRegion: ("region",),
    Buffer: ("shape", "strides", "elem_offset"),
}  # fmt: skip
"""Node class -> its fields that hold indices, extents or shapes."""


def with_data_arguments(func: PrimFunc) -> PrimFunc:
    """The function with its integer arguments that are data replaced by data variables."""
    scalars = [
        param
        for param in func.params
        if param not in func.buffer_map
        and is_index(param.dtype)
        and not isinstance(param, SizeVar)
        and not has_data(param)
    ]
    if not scalars:
        return func
    placing = {var for part in _placing(func) for var in collect(part, Var)}
    mapping = {param: data_variable(param) for param in scalars if param not in placing}
    if not mapping:
        return func
    params = [mapping.get(param, param) for param in func.params]
    return func.with_(params=params, body=substitute(func.body, mapping))


def _placing(func: PrimFunc) -> Iterator[object]:
    """The parts of a function that are indices, extents and shapes."""
    for root in (*func.buffer_map.values(), func.body):
        for node in collect(root, tuple(_INDEXING)):
            for name in _INDEXING[type(node)]:
                value = getattr(node, name)
                yield from value if isinstance(value, tuple) else [value]
