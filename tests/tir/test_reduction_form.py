"""Reading a reduction out of a block, where tests of its passes and primitives do not look."""

import pytest

import weft
from weft.ir.functor import collect
from weft.tir.reduction_form import NoKnownReducerError, read_reduction
from weft.tir.stmt import Block

MANY = range(12)


def test_many_buffers_are_refused_without_trying_their_orders():
    buffers = ", ".join(f'B{i}: T.Buffer((4,), "float32")' for i in MANY)
    inits = "\n".join(f"                B{i}[vi] = T.float32(0)" for i in MANY)
    updates = "\n".join(f"            B{i}[vi] = B{i}[vi] + A[vi, vk]" for i in MANY)
    func = weft.script.from_source(f"""
from weft.script import tir as T

@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), {buffers}):
    for i, k in T.grid(4, 8):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
{inits}
{updates}
""")
    (block,) = [item for item in collect(func.body, Block) if item.name_hint == "sums"]
    with pytest.raises(NoKnownReducerError, match="no known reducer"):
        read_reduction(block)
