"""Which parameters of a PrimFunc choose the elements of others that it reads.

In ``y[i] = table[ids[i] + 1]`` it is ``ids``. A gather whose index is another gather reads that
index's own index once for each time that the index occurs, which is three times where a negative
one counts from the end: fusion must not make chains of them (a Viterbi decoder's path).
"""

from __future__ import annotations

from weft.ir.functor import collect
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore


@deep_recursion
def index_parameters(func: PrimFunc) -> frozenset[int]:
    """The positions of the parameters whose elements are part of another access's index.

    A parameter counts also where the function computes an index of it in a buffer of its own.
    """
    choosing: set[Buffer] = set()
    reads: dict[Buffer, set[Buffer]] = {}
    for load in collect(func.body, BufferLoad):
        choosing.update(inner.buffer for inner in collect(load.indices, BufferLoad))
    for store in collect(func.body, BufferStore):
        choosing.update(inner.buffer for inner in collect(store.indices, BufferLoad))
        sources = {load.buffer for load in collect(store.value, BufferLoad)}
        reads.setdefault(store.buffer, set()).update(sources - {store.buffer})
    waiting = [*choosing]
    while waiting:
        for source in reads.get(waiting.pop(), ()):
            if source not in choosing:
                choosing.add(source)
                waiting.append(source)
    return frozenset(
        position
        for position, param in enumerate(func.params)
        if func.buffer_map.get(param) in choosing
    )


__all__ = ["index_parameters"]
