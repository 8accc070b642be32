"""Size hints: what extents usually are."""

import pytest

from weft.script import tir as T
from weft.tir import Var, size_hints
from weft.tir.op import floordiv
from weft.tir.op import max as maximum


@T.prim_func
def doubled(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        B[i] = A[i] * T.float32(2)


def test_a_function_without_the_attribute_has_no_hints():
    assert size_hints.size_hints_of(doubled) == {}
    hinted = doubled.with_attr(size_hints.SIZE_HINTS, {"n": 8})
    assert size_hints.size_hints_of(hinted) == {"n": 8}


@pytest.mark.parametrize(
    ("extent", "size"),
    [
        (lambda n, m: n, 17),
        (lambda n, m: n * 4 + 1, 69),
        (lambda n, m: floordiv(n + 7, 8), 3),
        (lambda n, m: maximum(n, 40), 40),
        (lambda n, m: n * m, None),
        (lambda n, m: m, None),
    ],
)
def test_an_extent_is_computed_from_the_hints_of_all_its_symbols(extent, size):
    n, m = Var("n", "int64"), Var("m", "int64")
    assert size_hints.likely_size(extent(n, m), {"n": 17}) == size
