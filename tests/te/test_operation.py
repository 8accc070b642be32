import numpy as np
import pytest

from weft import te
from weft.tir import ir_builder
from weft.tir.interp import run


def test_placeholder_when_shown_in_the_course():
    a = te.placeholder((128, 128), name="A", dtype="float32")
    assert f"{type(a).__module__}.{type(a).__name__}" == "weft.te.tensor.Tensor"
    assert str(a.shape) == "[128, 128]"
    assert (a.dtype, a.ndim, a.name, a.value_index) == ("float32", 2, "A", 0)
    assert a.shape[0] == a.shape[1]


def test_tensor_when_indexed():
    a = te.placeholder((4, 5), name="A")
    i = te.var("i")
    assert a[i, 0].dtype == "float32"
    assert (a[i][0] + 1.0).dtype == "float32"
    with pytest.raises(IndexError, match="A has 2 dimensions, got 3 indices"):
        a[i, i, i]
    with pytest.raises(IndexError, match="A has 2 dimensions, got 1 indices"):
        a[i] + 1.0
    with pytest.raises(TypeError, match="an index must be an integer, got float32"):
        a(i, 0.5)


def test_tensor_when_compared():
    a, b = te.placeholder((2,)), te.placeholder((2,))
    assert a == a.op.output(0)
    assert a != b
    assert len({a, a.op.output(0), b}) == 2


def test_compute_when_names_come_from_the_function():
    a = te.placeholder((2, 3, 4), name="A")
    named = te.compute((2, 3, 4), lambda x, *rest: a(x, *rest) * 2.0)
    assert [axis.var.name for axis in named.op.axis] == ["x", "i0", "i1"]
    given = te.compute((2, 3), lambda *p: a(*p, 0), varargs_names=["u", "v"])
    assert [axis.var.name for axis in given.op.axis] == ["u", "v"]


def test_compute_when_ranks_differ():
    with pytest.raises(ValueError, match="the shape has 2 dimensions, the function takes 1"):
        te.compute((2, 3), lambda i: i * 1.0)
    with pytest.raises(ValueError, match="takes 3"):
        te.compute((2, 3), lambda i, j, k: i * 1.0)


def test_compute_when_reduction_is_inside():
    a = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), "k")
    with pytest.raises(ValueError, match="a reduction must be the whole body"):
        te.compute((1,), lambda i: te.sum(a[k], axis=k) + 1.0)


def test_reduce_axis_when_it_is_no_reduction():
    a = te.placeholder((4,), name="A")
    with pytest.raises(ValueError, match="i is no reduction axis"):
        te.compute((4,), lambda i: te.sum(a[i], axis=te.thread_axis((0, 4), "threadIdx.x", "i")))


def test_max_when_used_on_two_values():
    a = te.placeholder((4,), name="A")
    out = te.compute((4,), lambda *i: te.max(a(*i), 0), name="relu")
    data, result = np.array([-1, 2, -3, 4], "float32"), np.zeros(4, "float32")
    run(te.create_prim_func([a, out]), data, result)
    np.testing.assert_array_equal(result, np.maximum(data, 0))


def test_placeholder_when_extent_is_negative():
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        te.placeholder((2, -1))


def test_scan_when_called():
    with pytest.raises(NotImplementedError, match=r"te\.scan cannot"):
        te.scan()


def test_tag_scope():
    a = te.placeholder((4,), name="A")
    with te.tag_scope("mine"):
        b = te.compute((4,), lambda i: a[i])
        with pytest.raises(ValueError, match="tag= inside"):
            te.compute((4,), lambda i: a[i], tag="other")
    assert b.op.tag == "mine"
    assert te.compute((4,), lambda i: a[i]).op.tag == ""


def _plus_one(ins, outs):
    ib = ir_builder.create()
    source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, 4, "i") as i:
        target[i] = source[i] + 1.0
    return ib.get()


def test_extern_when_input_is_computed():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="B")
    c = te.extern((4,), [b], _plus_one, name="C")
    d = te.compute((4,), lambda i: c[i] * 3.0, name="D")
    data, result = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    func = te.create_prim_func([a, d])
    run(func, data, result)
    np.testing.assert_array_equal(result, (data * 2 + 1) * 3)


def test_extern_when_dtype_is_unclear():
    a, b = te.placeholder((4,)), te.placeholder((4,), "int32")
    with pytest.raises(ValueError, match="the output dtype is not clear"):
        te.extern((4,), [a, b], _plus_one)


def test_extern_primfunc():
    x = te.placeholder((4,), name="X")
    inner = te.create_prim_func([x, te.compute((4,), lambda i: x[i] * 2.0, name="twice")])
    a = te.placeholder((4,), name="A")
    b = te.extern_primfunc([a], inner)
    data, result = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    run(te.create_prim_func([a, b]), data, result)
    np.testing.assert_array_equal(result, data * 2)


@pytest.mark.parametrize("dom", [(0, 8.5), (0.5, 8), 8.5, "a", (0, "n")])
def test_axes_run_over_integers(dom):
    with pytest.raises(TypeError, match="the range of an axis: expected integers, got"):
        te.reduce_axis(dom)


def test_indices_are_integers_as_soon_as_they_are_written():
    a = te.placeholder((4, 4), name="A")
    for index in (("a", 0), (0, 1.5), "a"):
        with pytest.raises(TypeError, match="tensor A: an index must be an integer, got"):
            a[index]
    with pytest.raises(TypeError, match="tensor A: an index must be an integer, got handle"):
        a[0]["b"]
