"""``create_prim_func(..., index_dtype_override)``: one type for what counts, the same results."""

from __future__ import annotations

import numpy as np
import pytest

from weft import te, tir
from weft.ir.functor import collect
from weft.tir.interp import run
from weft.tir.stmt import Block, For

RNG = np.random.default_rng(3)
A = te.placeholder((4, 6), name="A")
I = te.placeholder((4,), "int32", name="I")
DATA = {"A": RNG.random((4, 6)).astype("float32"), "I": np.array([3, 0, 2, 5], "int32")}


def total(i):
    k = te.reduce_axis((0, 6), "k")
    return te.sum(A[i, k] * k.astype("float32"), axis=k)


def row_below(i):
    k = te.reduce_axis((0, i + 1), "k")
    return te.sum(A[i, k], axis=k)


# Inputs, and a computation that uses its indices as numbers, beside data, or in calls.
CASES = {
    "an element": ([A], lambda: te.compute((4, 6), lambda i, j: A[i, j] + 1.0)),
    "the index as a value": ([], lambda: te.compute((5,), lambda i: i * 3 - 1)),
    "the index as a real number": ([], lambda: te.compute((5,), lambda i: i.astype("float32"))),
    "an index from data": ([A, I], lambda: te.compute((4,), lambda i: A[i, I[i]])),
    "an index and data added": ([I], lambda: te.compute((4,), lambda i: I[i] + i)),
    "an index and data compared": ([I], lambda: te.compute((4,), lambda i: I[i] < i)),
    "the larger of an index and data": ([I], lambda: te.compute((4,), lambda i: te.max(I[i], i))),
    "digits of an index": ([A], lambda: te.compute((24,), lambda f: A[f // 6, f % 6])),
    "a choice by the index": ([A], lambda: te.compute(
        (4, 6), lambda i, j: te.if_then_else(j < i, A[i, j], 0.0))),
    "a choice of indices": ([A], lambda: te.compute(
        (4,), lambda i: A[i, tir.Select(i < 2, i, te.const(5, "int32"))])),
    "a shift of the index": ([], lambda: te.compute((5,), lambda i: i << 2)),
    "a let of the index": ([], lambda: te.compute((5,), lambda i: doubled_by_let(i))),
    "a reduction": ([A], lambda: te.compute((4,), total)),
    "a range that depends on the element": ([A], lambda: te.compute((4,), row_below)),
    "the index in 8 bits": ([], lambda: te.compute((5,), lambda i: i.astype("int8") * 100)),
}  # fmt: skip


def doubled_by_let(i):
    x = te.var("x")
    return tir.Let(x, i + 1, x * 2)


def computed(tensors, tensor, override):
    func = te.create_prim_func([*tensors, tensor], override)
    result = np.zeros([extent.value for extent in tensor.shape], str(tensor.dtype))
    run(func, *[DATA[source.name] for source in tensors], result)
    return func, result


@pytest.mark.parametrize("override", ["int32", "int64"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_results_are_the_same_and_all_that_counts_has_the_type(name, override):
    tensors, make = CASES[name]
    tensor = make()
    _, wanted = computed(tensors, tensor, None)
    func, found = computed(tensors, tensor, override)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    for loop in collect(func, For):
        assert loop.loop_var.dtype == loop.extent.dtype == override
    for block in collect(func, Block):
        for axis in block.iter_vars:
            assert axis.var.dtype == axis.dom.extent.dtype == override
    for buffer in func.buffer_map.values():
        assert {extent.dtype for extent in buffer.shape} <= {override}


def test_symbolic_extents_take_the_type_and_scalar_arguments_keep_theirs():
    n, scale = te.var("n"), te.var("scale", "int32")
    a = te.placeholder((n, 4), name="a")
    out = te.compute((n, 4), lambda i, j: a[i, j] * scale.astype("float32"), name="out")
    func = te.create_prim_func([a, out, scale], "int64")
    (rows, _) = func.buffer_map[func.params[0]].shape
    assert (rows.name, rows.dtype) == ("n", "int64")
    assert func.params[2] is scale
    data, result = RNG.random((3, 4)).astype("float32"), np.zeros((3, 4), "float32")
    run(func, data, result, 5)
    np.testing.assert_allclose(result, data * 5)


def test_constants_that_are_values_keep_their_type():
    out = te.compute((3,), lambda i: te.const(7, "int32"), name="out")
    func = te.create_prim_func([out], "int64")
    assert "T.int64(7)" not in func.script()
    result = np.zeros(3, "int32")
    run(func, result)
    assert result.tolist() == [7, 7, 7]


def test_the_override_is_an_integer_type():
    for wrong in ("float32", "bool"):
        with pytest.raises(TypeError, match=f"expected an integer type for indices, got {wrong}"):
            te.create_prim_func([A, te.compute((4,), lambda i: A[i, 0])], wrong)


def test_data_beside_an_index_wraps_in_its_own_type():
    """The largest int32 and 1, halved: the sum is negative, with indices of int64 too."""
    out = te.compute((4,), lambda i: te.floordiv(I[i] + i, 2), name="out")
    data = np.full(4, 2**31 - 1, "int32")
    results = []
    for override in (None, "int64"):
        result = np.zeros(4, "int32")
        run(te.create_prim_func([I, out], override), data, result)
        results.append(result.tolist())
    wrapped = (data + np.arange(4, dtype="int32")) // 2
    assert results == [wrapped.tolist()] * 2
