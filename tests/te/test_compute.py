"""``te.compute``, ``te.placeholder`` and ``te.tag_scope``: what they make, and what they refuse."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from weft import te
from weft.tir.interp import run

A = te.placeholder((4,), name="A")
M = te.placeholder((4, 5), name="M")


def computed(inputs, *outputs):
    """The values of the outputs, for arrays in the order of the input tensors."""
    tensors = [tensor for tensor, _ in inputs]
    arrays = [array for _, array in inputs]
    results = [np.zeros([extent.value for extent in out.shape], str(out.dtype)) for out in outputs]
    run(te.create_prim_func([*tensors, *outputs]), *arrays, *results)
    return results[0] if len(results) == 1 else results


@pytest.mark.parametrize(
    ("shape", "extents"),
    [
        ((4, 5), [4, 5]), ([4, 5], [4, 5]), (7, [7]), ((), []), ((4.0, 2), [4, 2]),
        ((np.int64(3), np.int32(2)), [3, 2]), ((0, 3), [0, 3]), (np.int64(6), [6]),
    ],
    ids=str,
)  # fmt: skip
def test_shapes(shape, extents):
    tensor = te.placeholder(shape)
    assert [extent.value for extent in tensor.shape] == extents
    assert tensor.ndim == len(extents)
    assert tensor.dtype == "float32"


def test_symbolic_shapes_keep_their_expressions():
    n, m = te.var("n"), te.size_var("m", "int64")
    tensor = te.placeholder((n + 1, m), "int8")
    assert [str(extent) for extent in tensor.shape] == ["n + 1", "m"]
    assert [extent.dtype for extent in tensor.shape] == ["int32", "int64"]


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (None, TypeError, "expected a shape such as \\(128, 128\\), got None"),
        ("ab", TypeError, "expected a shape such as \\(128, 128\\), got 'ab'"),
        ((2, -1), ValueError, "an extent must not be negative, got -1"),
        ((4.5,), TypeError, "a shape holds integers, got 4.5"),
        ((te.const(2.0, "float32"),), TypeError, "a shape holds integers, got float32"),
        ((True,), TypeError, "a shape holds integers, got bool"),
        ((None,), TypeError, "expected an expression or a number, got NoneType"),
        (((1, 2), 3), TypeError, "expected an expression or a number, got tuple"),
    ],
    ids=str,
)
def test_what_is_no_shape(shape, error, message):
    for make in (te.placeholder, lambda wrong: te.compute(wrong, lambda *i: 0.0)):
        with pytest.raises(error, match=message):
            make(shape)


def test_a_dtype_that_does_not_exist():
    with pytest.raises(TypeError, match="expected a data type such as 'float32'.* got 'flot32'"):
        te.placeholder((4,), "flot32")


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda i, j: M[i, j], ["i", "j"]), (lambda *i: M(*i), ["i0", "i1"]),
        (lambda row, *rest: M(row, *rest), ["row", "i0"]),
        (functools.partial(lambda m, x, y: m[x, y], M), ["x", "y"]),
    ],
)  # fmt: skip
def test_axes_have_the_names_of_the_parameters(function, names):
    tensor = te.compute((4, 5), function)
    assert [axis.var.name for axis in tensor.op.axis] == names
    assert [axis.dom.extent.value for axis in tensor.axis] == [4, 5]


def test_bound_methods_count_without_self():
    class Rows:
        def element(self, i, j):
            return M[i, j]

    assert [axis.var.name for axis in te.compute((4, 5), Rows().element).axis] == ["i", "j"]


def keyword_only(i, *, scale):
    return A[i] * scale


@pytest.mark.parametrize(
    ("shape", "function", "error", "message"),
    [
        ((4,), 3, TypeError, "compute c: expected a function from indices to a value, got int"),
        ((4,), lambda: 1.0, ValueError, "shape has 1 dimensions, the function takes 0 indices"),
        ((4, 5), lambda: 1.0, ValueError, "shape has 2 dimensions, the function takes 0 indices"),
        ((4, 5), lambda i: A[i], ValueError, "2 dimensions, the function takes 1 indices"),
        ((4,), lambda i, j: M[i, j], ValueError, "1 dimensions, the function takes 2 indices"),
        ((), lambda i: A[i], ValueError, "0 dimensions, the function takes 1 indices"),
        ((4,), lambda i, j=0: M[i, j], ValueError, "parameter j has a default value"),
        ((4,), lambda i, **more: A[i], ValueError, "keyword parameter more"),
        ((4,), keyword_only, ValueError, "keyword parameter scale"),
        ((4,), lambda i: None, TypeError, "expected an expression or a number, got NoneType"),
        ((4,), lambda i: "x", TypeError, 'compute c: expected a number for each element, got "x"'),
        ((4,), lambda i: A, TypeError, "expected an expression or a number, got Tensor"),
        ((4,), lambda i: M[i], IndexError, "tensor M has 2 dimensions, got 1 indices"),
        ((4,), lambda i: [], ValueError, "compute c: the function returned no expression"),
    ],
)
def test_functions_that_give_no_elements(shape, function, error, message):
    with pytest.raises(error, match=message):
        te.compute(shape, function, name="c")


def test_names_of_further_indices():
    tensor = te.compute((2, 3), lambda *p: M(*p), varargs_names=("u", "v"))
    assert [axis.var.name for axis in tensor.axis] == ["u", "v"]
    with pytest.raises(ValueError, match="varargs_names has 1 names for 2 indices"):
        te.compute((2, 3), lambda *p: M(*p), varargs_names=["u"])


@pytest.mark.parametrize(
    ("element", "dtype"),
    [(True, "bool"), (3, "int32"), (3.5, "float32"), (te.const(1, "int8"), "int8")], ids=str,
)  # fmt: skip
def test_a_number_fills_the_tensor(element, dtype):
    tensor = te.compute((3,), lambda i: element)
    assert tensor.dtype == dtype
    assert computed([], tensor).tolist() == [getattr(element, "value", element)] * 3


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (2, 1, 3)])
def test_elements_of_every_shape(shape):
    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *i: a(*i) * 2.0, name="b")
    data = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    np.testing.assert_array_equal(computed([(a, data)], b), data * 2)


def test_extents_of_two_widths():
    a = te.placeholder((2, te.const(3, "int64")), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="b")
    assert [axis.var.dtype for axis in b.axis] == ["int32", "int64"]
    data = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(computed([(a, data)], b), data + 1)


def test_several_tensors_of_one_computation():
    low, high = te.compute((4,), lambda i: (A[i] - 1.0, i), name="pair")
    assert (low.name, high.name) == ("pair.v0", "pair.v1")
    assert (low.dtype, high.dtype) == ("float32", "int32")
    assert (low.op, low.value_index, high.value_index) == (high.op, 0, 1)
    first, second = computed([(A, np.arange(4, dtype="float32"))], low, high)
    assert (first.tolist(), second.tolist()) == ([-1, 0, 1, 2], [0, 1, 2, 3])


def test_a_list_of_one_element_is_one_tensor():
    assert te.compute((4,), lambda i: [A[i]]).name == "compute"


def test_what_an_operation_reads():
    b = te.compute((4,), lambda i: A[i] + M[i, 0] + A[0], name="b")
    assert [tensor.name for tensor in b.op.input_tensors] == ["A", "M"]
    assert b.op.num_outputs == 1
    assert list(b.op.reduce_axis) == []
    assert list(A.op.input_tensors) == []
    with pytest.raises(IndexError, match="b has 1 outputs, output 1 does not exist"):
        b.op.output(1)
    with pytest.raises(IndexError, match="output -1 does not exist"):
        b.op.output(-1)


def test_tags_and_attributes_stay_on_the_operation():
    b = te.compute((4,), lambda i: A[i], tag="mine", attrs={"size": 3, "of": "b"})
    assert b.op.tag == "mine"
    assert dict(b.op.attrs) == {"size": 3, "of": "b"}
    assert dict(te.compute((4,), lambda i: A[i]).op.attrs) == {}


def test_a_tag_scope_is_a_decorator_too():
    @te.tag_scope("rows")
    def twice(tensor, *, times=2):
        """Doubles."""
        return te.compute(tensor.shape, lambda *i: tensor(*i) * float(times))

    assert twice(A, times=3).op.tag == "rows"
    assert (twice.__name__, twice.__doc__) == ("twice", "Doubles.")
    assert te.TagScope.get_current() is None


def test_a_tag_scope_ends_with_an_exception():
    with pytest.raises(KeyError), te.tag_scope("inner"):
        raise KeyError("inside")
    assert te.TagScope.get_current() is None
    assert te.compute((4,), lambda i: A[i]).op.tag == ""


def test_tag_scopes_do_not_nest():
    with te.tag_scope("outer") as scope:
        assert te.TagScope.get_current() is scope
        with pytest.raises(ValueError, match="'inner'\\): scopes do not nest; 'outer' is open"):
            te.tag_scope("inner").__enter__()
    assert te.TagScope.get_current() is None


def test_axes_of_threads():
    bound = te.thread_axis((0, 64), "threadIdx.x")
    assert (bound.var.name, bound.thread_tag) == ("threadIdx.x", "threadIdx.x")
    assert bound.dom.extent.value == 64
    free = te.thread_axis("blockIdx.y", name="y")
    assert (free.var.name, free.dom) == ("y", None)
    with pytest.raises(ValueError, match="the tag must be given, such as 'threadIdx.x'"):
        te.thread_axis((0, 4))


@pytest.mark.parametrize(
    ("dom", "begin", "extent"),
    [((2, 6), "2", "4"), (5, "0", "5"), ([1, 1], "1", "0"),
     ((te.var("a"), te.var("b")), "a", "b - a"),
     (te.var("n"), "0", "n"), ((0, te.const(4, "int64")), "T.int64(0)", "T.int64(4)")],
    ids=str,
)  # fmt: skip
def test_ranges_of_axes(dom, begin, extent):
    axis = te.reduce_axis(dom, "k")
    assert (str(axis.dom.min), str(axis.dom.extent)) == (begin, extent)
    assert axis.var.name == "k"


@pytest.mark.parametrize(
    ("dom", "error", "message"),
    [((0, 4, 5), ValueError, "expected \\(begin, end\\), got 3 values"),
     ((0,), ValueError, "expected \\(begin, end\\), got 1 values"),
     ((0, 2.5), TypeError, "the range of an axis: expected integers, got 2.5"),
     (None, TypeError, "expected an expression or a number, got NoneType")],
)  # fmt: skip
def test_what_is_no_range(dom, error, message):
    with pytest.raises(error, match=message):
        te.reduce_axis(dom)
