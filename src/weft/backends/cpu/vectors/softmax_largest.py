"""LargestOfSoftmax: finds the largest elements of a softmax by a comparison that may lose NaN.

Before: ``top[i] = T.max(top[i], x[i, j])``, which keeps NaN and takes three instructions. After:
``top[i] = T.Select(x[i, j] > top[i], x[i, j], top[i])``, which takes one. The results are the same:
a NaN that ``top`` loses is still in ``x``, so its power ``p[i, j]`` is NaN, and so are the sum of
the row and all its quotients. The pass therefore requires that ``top`` is used only for the powers,
and the powers only for the sum and the quotients, in the form that MultiplyByReciprocal leaves:
``y[i, j] = p[i, j] * (1 / total[i])``. It runs while the function still has blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.backends.cpu.vectors.reciprocal import Values, uncast
from weft.ir.functor import Mutator, collect
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Div, Max, Mul, Select
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body


def _readers(func: PrimFunc) -> dict[Buffer, set[Buffer]]:
    """Buffer -> the other buffers that are computed from it."""
    readers: dict[Buffer, set[Buffer]] = {}
    for block in collect(func.body, Block):
        if block.name_hint != "root":
            written = {store.buffer for store in collect(block, BufferStore)}
            for load in collect(block, BufferLoad):
                readers.setdefault(load.buffer, set()).update(written - {load.buffer})
    return readers


def _tops(values: Values, readers: dict[Buffer, set[Buffer]]) -> Iterator[Buffer]:
    """The buffers of a softmax's largest elements that need not keep NaN."""
    for result in values.blocks:
        store = values.store(result)
        product = None if store is None else uncast(store.value)
        if not isinstance(product, Mul) or not isinstance(product.b, Div):
            continue
        power, total = product.a, product.b.b
        if not isinstance(power, BufferLoad) or not isinstance(total, BufferLoad):
            continue
        softmax = values.softmax_of(total.buffer)
        if softmax is None or softmax[0] is not power.buffer:
            continue
        powers, top = softmax
        used = readers[top] == {powers} and readers[powers] == {total.buffer, result}
        if used and str(top.dtype) == "float32":
            yield top


class _Select(Mutator):
    def __init__(self, tops: set[Buffer]) -> None:
        super().__init__()
        self.tops = tops

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        if store.buffer not in self.tops or not isinstance(store.value, Max):
            return store
        held, new = store.value.a, store.value.b
        return store.with_(value=Select(new > held, new, held))


def largest_of_softmax(func: PrimFunc) -> PrimFunc:
    """Replace the maxima of softmaxes in a function by selections."""
    if not collect(func.body, Max):
        return func
    tops = set(_tops(Values(func), _readers(func))) - set(func.buffer_map.values())
    return rewrite_body(func, _Select(tops)) if tops else func


LargestOfSoftmax = define_pass("LargestOfSoftmax", largest_of_softmax)
