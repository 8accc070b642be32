import numpy as np
import pytest

from weft import te
from weft.tir.interp import run


def test_comm_reducer_when_product():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), name="product")
    a = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((0, 4), "k")
    out = te.compute((3,), lambda i: product(a[i, k], axis=k))
    data, result = np.random.default_rng(0).random((3, 4)).astype("float32"), np.zeros(3, "float32")
    run(te.create_prim_func([a, out]), data, result)
    np.testing.assert_allclose(result, data.prod(1), rtol=1e-5)


def test_comm_reducer_when_tuple():
    def combine(x, y):
        first = x[1] >= y[1]
        return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])

    def identity(index, value):
        return te.const(-1, index), te.min_value(value)

    argmax = te.comm_reducer(combine, identity, name="argmax")
    n = te.var("n")
    a = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), "k")
    index, value = te.compute((n,), lambda i: argmax((k, a[i, k]), axis=k), name="best")
    func = te.create_prim_func([a, index, value])
    assert "v_best_v0" in func.script()
    data = np.random.default_rng(1).random((5, 5)).astype("float32")
    indices, values = np.zeros(5, "int32"), np.zeros(5, "float32")
    run(func, data, indices, values)
    np.testing.assert_array_equal(indices, data.argmax(1))
    np.testing.assert_array_equal(values, data.max(1))


def test_sum_when_a_condition_is_given():
    a = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), "k")
    out = te.compute((1,), lambda i: te.sum(a[k], axis=k, where=k % 2 == 0))
    data, result = np.arange(6, dtype="float32"), np.zeros(1, "float32")
    run(te.create_prim_func([a, out]), data, result)
    assert result[0] == data[::2].sum()


def test_sum_when_an_initial_value_is_given():
    a = te.placeholder((3,), name="A")
    k = te.reduce_axis((0, 3), "k")
    out = te.compute((1,), lambda i: te.sum(a[k], axis=k, init=10.0))
    data, result = np.ones(3, "float32"), np.zeros(1, "float32")
    run(te.create_prim_func([a, out]), data, result)
    assert result[0] == 13


def test_reducer_when_types_differ():
    broken = te.comm_reducer(lambda x, y: te.const(1, "int32") + 0 * 1, lambda t: te.const(0, t))
    a = te.placeholder((3,), name="A")
    k = te.reduce_axis((0, 3), "k")
    with pytest.raises(TypeError, match="a component is float32, its combination is int32"):
        te.compute((1,), lambda i: broken(a[k], axis=k))
