"""How many elements one iteration of an element-wise kernel computes."""

from __future__ import annotations

import pytest

from tests.lib.default_schedules import scheduled
from weft import te, tir, topi
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


@pytest.mark.parametrize(("channels", "shared"), [(16, 8), (21, 7), (1, 1)])
def test_rows_share_the_positions_of_a_resize(channels, shared):
    """The loop around the vectors is over channels, which all read at the same positions."""
    n, h, w, b = [tir.SizeVar(name, "int64") for name in "nhwb"]
    x = te.placeholder((n, tir.IntImm("int64", channels), h, w), "float32", "x")
    func = scheduled(te.create_prim_func([x, topi.image.resize2d(x, None, (h, b))]))
    vector, around, *_ = collect(func.body, For)
    assert vector.kind is ForKind.VECTORIZED
    is_shared = str(around.extent) == f"T.int64({shared})"
    assert is_shared == (shared > 1)
