"""Sizes of memory whose arithmetic wraps are refused."""

import numpy as np
import pytest

import weft
from weft.script import from_source
from weft.support.errors import TVMError

ALLOCATION = """
@T.prim_func
def f(m: T.DTYPE, n: T.DTYPE, C: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((m * n,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            B[i * n + j] = T.float32(1)
    C[0] = B[0]
"""
VIEW = """
@T.prim_func
def f(m: T.DTYPE, n: T.DTYPE, A: T.Buffer((4,), "float32")):
    V = T.decl_buffer((m * n,), "float32", data=A.data)
    for i in T.serial(m):
        for j in T.serial(n):
            V[i * n + j] = T.float32(1)
"""


@pytest.mark.parametrize("text", [ALLOCATION, VIEW])
@pytest.mark.parametrize(("dtype", "size"), [("int64", 1 << 32), ("int32", 1 << 16)])
def test_a_product_that_wraps_to_no_bytes(text, dtype, size):
    built = weft.build(from_source(text.replace("DTYPE", dtype)))
    out = np.zeros(4, "float32")[: 1 if text is ALLOCATION else 4]
    with pytest.raises(TVMError, match="cannot allocate|reaches to byte"):
        built["f"](size, size, out)
    built["f"](2, 2, out)
    assert (out == 1).all()


def test_an_allocation_of_less_than_nothing_is_refused():
    text = ALLOCATION.replace("m * n", "-5").replace("DTYPE", "int64")
    with pytest.raises(TVMError, match="expected extents of 0 or more for B, got -5|extent -5"):
        weft.build(from_source(text))
