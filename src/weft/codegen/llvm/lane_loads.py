"""``A[B[i:i + 8]]``, whose indices are read from memory: a load for each lane, not a gather.

A gather of AVX2 and AVX-512 is microcode on AMD's processors and, since the flaw "gather data
sampling" was mended, on Intel's. Eight loads take half of its time, if the eight indices are not
first loaded as a vector, out of which they would have to be taken. So each index is loaded by
itself, and what is computed of it (it is clamped, or wrapped) is computed on scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.expr import is_call
from weft.tir.lanes import lane_of

_OPERATIONS: Final = 6
"""The most operations on indices, beside their loads, for which that is faster: more of them are
faster on vectors, even if a gather has to follow."""


def fits(indices: Sequence[PrimExpr]) -> bool:
    """Whether vector indices are read from memory and little else is computed of them."""
    nodes = _nodes([index for index in indices if index.dtype.lanes > 1])
    loads = [node for node in nodes if isinstance(node, BufferLoad)]
    operations = [node for node in nodes if isinstance(node, (e.BinaryExpr, e.Select, e.Not))]
    return (
        any(load.dtype.lanes > 1 for load in loads)
        and len(operations) <= _OPERATIONS
        and all(load.predicate is None and load.buffer.dtype.lanes == 1 for load in loads)
        and not any(isinstance(node, (e.Call, e.Let, e.Shuffle)) for node in nodes)
        and not any(isinstance(node, e.Var) and node.dtype.lanes > 1 for node in nodes)
        and not any(node.dtype.is_float for node in nodes)
    )


def _nodes(exprs: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Expressions and all their parts, each once; of a ``T.checked`` only its value."""
    nodes: dict[int, PrimExpr] = {}
    waiting = list(exprs)
    while waiting:
        node = waiting.pop()
        if is_call(node, "checked"):
            waiting.append(node.args[0])
        elif id(node) not in nodes:
            nodes[id(node)] = node
            waiting += [part for part in node._parts_() if isinstance(part, PrimExpr)]
    return list(nodes.values())


def lanes_of(indices: Sequence[PrimExpr], lanes: int) -> list[list[PrimExpr]]:
    """For each lane, the scalar indices of its element."""
    return [
        [index if index.dtype.lanes == 1 else lane_of(index, at) for index in indices]
        for at in range(lanes)
    ]
