"""Elements whose places are read from memory: one load for each lane.

A gather of AVX2 and AVX-512 is microcode on AMD's processors and, since its data sampling was
mended, on Intel's: a load into each lane takes half of its time, where the places need not be
taken out of a vector for that. So they are read, and clamped or wrapped, as scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.sharing import parts_of
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.lanes import lane_of
from weft.tir.lowering.facts import is_call

_OPERATIONS: Final = 6
"""On places, beside their loads: more are faster in vectors, although a gather is what takes those.
"""


def fits(indices: Sequence[PrimExpr]) -> bool:
    """Whether the lanes of indices are read from memory and little is computed of them."""
    nodes = _nodes([index for index in indices if index.dtype.lanes > 1])
    loads = [node for node in nodes if isinstance(node, BufferLoad)]
    operations = [node for node in nodes if isinstance(node, e.BinaryExpr | e.Select | e.Not)]
    return (
        any(load.dtype.lanes > 1 for load in loads) and len(operations) <= _OPERATIONS
        and all(load.predicate is None and load.buffer.dtype.lanes == 1 for load in loads)
        and not any(isinstance(node, e.Call | e.Let | e.Shuffle) for node in nodes)
        and not any(isinstance(node, e.Var) and node.dtype.lanes > 1 for node in nodes)
        and not any(node.dtype.is_float for node in nodes)
    )  # fmt: skip


def _nodes(exprs: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Expressions and their parts, each once, without the tests of what is loaded."""
    nodes: dict[int, PrimExpr] = {}
    waiting = list(exprs)
    while waiting:
        node = waiting.pop()
        if is_call(node, "checked"):
            waiting.append(node.args[0])
        elif id(node) not in nodes:
            nodes[id(node)] = node
            waiting += [part for part in parts_of(node) if isinstance(part, PrimExpr)]
    return list(nodes.values())


def lanes_of(indices: Sequence[PrimExpr], lanes: int) -> list[list[PrimExpr]]:
    """The scalar indices of each lane."""
    return [
        [index if index.dtype.lanes == 1 else lane_of(index, at) for index in indices]
        for at in range(lanes)
    ]
