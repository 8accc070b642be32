"""How many elements one iteration of an element-wise kernel computes."""

from __future__ import annotations

import pytest

from tests.lib.default_schedules import scheduled
from weft import te, topi
from weft.ir.functor import collect
from weft.tir.stmt import For, ForKind


@pytest.mark.parametrize(
    ("kind", "compute", "expected"),
    [("float32", topi.exp, 16), ("float64", topi.exp, 8), ("float16", topi.exp, 16),
     ("int64", lambda x: topi.add(x, x), 16)],
)  # fmt: skip
def test_vectors_of_float64_are_as_many_as_of_float32(kind, compute, expected):
    x = te.placeholder((4096,), kind)
    func = scheduled(te.create_prim_func([x, compute(x)]))
    loops = [loop for loop in collect(func.body, For) if loop.kind is ForKind.VECTORIZED]
    assert [int(loop.extent) for loop in loops] == [expected]
