"""Reductions by what they compute: types, ranges, conditions, initial values, tuples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft import te, tir
from weft.tir.interp import run

RNG = np.random.default_rng(5)


def reduced(reducer, data, axes, **options):
    """``reducer`` over some dimensions of an array, by the interpreter."""
    a = te.placeholder(data.shape, str(data.dtype), name="A")
    kept = [dim for dim in range(data.ndim) if dim not in axes]

    def element(*point):
        loops = [te.reduce_axis((0, data.shape[dim]), f"k{dim}") for dim in axes]
        index = dict(zip(kept, point, strict=True)) | {
            dim: loop.var for dim, loop in zip(axes, loops, strict=True)
        }
        return reducer(a(*[index[dim] for dim in range(data.ndim)]), axis=loops, **options)

    out = te.compute([data.shape[dim] for dim in kept], element, name="out")
    result = np.zeros([data.shape[dim] for dim in kept], str(out.dtype))
    run(te.create_prim_func([a, out]), data, result)
    return result


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (2, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reductions_over_dimensions(name, axes):
    data = RNG.integers(-9, 9, (3, 4, 2)).astype("int32")
    wanted = getattr(np, name)(data, axis=axes)
    np.testing.assert_array_equal(reduced(getattr(te, name), data, axes), wanted)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_a_reduction_has_the_type_of_what_it_reduces(name, dtype):
    """Sums of narrow integers wrap, as all their arithmetic does."""
    data = RNG.integers(0, 100, (5, 7)).astype(dtype)
    found = reduced(getattr(te, name), data, (1,))
    assert found.dtype == dtype
    wanted = getattr(np, name)(data.astype("int64"), axis=1).astype(dtype)
    np.testing.assert_allclose(found.astype("float64"), wanted.astype("float64"), rtol=1e-2)
    if not dtype.startswith("float"):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "dtype", "identity"),
    [
        ("sum", "int32", 0), ("sum", "float32", 0.0), ("max", "int8", -128), ("max", "uint8", 0),
        ("max", "float32", -np.inf), ("min", "int16", 2**15 - 1), ("min", "uint32", 2**32 - 1),
        ("min", "float64", np.inf), ("min", "float16", np.inf),
    ],
)  # fmt: skip
def test_a_reduction_of_nothing_is_the_identity(name, dtype, identity):
    data = np.zeros((3, 0), dtype)
    assert reduced(getattr(te, name), data, (1,)).tolist() == [identity] * 3
    assert reduced(getattr(te, name), np.zeros((0, 3), dtype), (1,)).tolist() == []


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_a_reduction_where_one_of_two_axes_is_empty(shape):
    assert reduced(te.sum, np.ones(shape, "float32"), (0, 1)).tolist() == 0.0


@pytest.mark.parametrize("init", [10, 2.5, -1])
def test_an_initial_value_takes_part_once(init):
    data = RNG.random((4, 3)).astype("float32")
    np.testing.assert_allclose(reduced(te.sum, data, (1,), init=init), data.sum(1) + init, 1e-6)
    wanted = np.maximum(data.max(1), np.float32(init))
    np.testing.assert_array_equal(reduced(te.max, data, (1,), init=init), wanted)


def test_an_initial_value_of_each_element():
    a = te.placeholder((3, 4), name="A")
    b = te.placeholder((3,), name="B")
    k = te.reduce_axis((0, 4), "k")
    out = te.compute((3,), lambda i: te.sum(a[i, k], axis=k, init=b[i] * 2.0), name="out")
    data, start = RNG.random((3, 4)).astype("float32"), np.array([1, 2, 3], "float32")
    result = np.zeros(3, "float32")
    run(te.create_prim_func([a, b, out]), data, start, result)
    np.testing.assert_allclose(result, data.sum(1) + start * 2, rtol=1e-6)


@pytest.mark.parametrize(("begin", "end"), [(1, 3), (0, 1), (3, 5), (2, 2)])
def test_axes_that_do_not_begin_at_zero(begin, end):
    a = te.placeholder((5,), "int32", name="A")
    k = te.reduce_axis((begin, end), "k")
    out = te.compute((1,), lambda i: te.sum(a[k] * k, axis=k), name="out")
    data, result = np.arange(5, dtype="int32") + 10, np.zeros(1, "int32")
    run(te.create_prim_func([a, out]), data, result)
    assert result[0] == sum(data[at] * at for at in range(begin, end))


def test_conditions_choose_what_is_reduced():
    a = te.placeholder((4, 4), "int32", name="A")
    data = RNG.integers(-9, 9, (4, 4)).astype("int32")
    k, m = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "m")
    upper = te.compute((1,), lambda i: te.sum(a[k, m], axis=[k, m], where=k <= m), name="upper")
    result = np.zeros(1, "int32")
    run(te.create_prim_func([a, upper]), data, result)
    assert result[0] == np.triu(data).sum()
    n = te.reduce_axis((0, 4), "n")
    below = te.compute((4,), lambda i: te.max(a[i, n], axis=n, where=n < i), name="below")
    result = np.zeros(4, "int32")
    run(te.create_prim_func([a, below]), data, result)
    lowest = np.iinfo("int32").min
    assert result.tolist() == [max([lowest, *data[i, :i].tolist()]) for i in range(4)]


def test_values_are_combined_without_axes():
    x, y, z = (te.var(name) for name in "xyz")
    assert str(te.max(x, y)) == "T.max(x, y)"
    assert str(te.min(x, y, z, 4)) == "T.min(T.min(T.min(x, y), z), 4)"
    assert str(te.sum(x, 3, y, z, 1)) == "x + 3 + y + z + 1"


def pairwise(better):
    """A reducer to (place, value) of the best value; the first of equal ones."""

    def combine(x, y):
        first = tir.any(better(x[1], y[1]), tir.all(x[1].equal(y[1]), x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    return combine


def places_and_values(data, better, worst):
    """The place and the value of the best element of each row."""
    arg = te.comm_reducer(
        pairwise(better), lambda index, value: (te.const(2**31 - 1, index), worst(value)), "arg"
    )
    a = te.placeholder(data.shape, str(data.dtype), name="A")
    k = te.reduce_axis((0, data.shape[1]), "k")
    place, value = te.compute(data.shape[:1], lambda i: arg((k, a[i, k]), axis=k))
    results = [np.zeros(len(data), "int32"), np.zeros(len(data), data.dtype)]
    run(te.create_prim_func([a, place, value]), data, *results)
    return results


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_places_of_the_largest_and_of_the_smallest(dtype):
    data = RNG.integers(-50, 50, (6, 9)).astype(dtype)
    for better, worst, wanted in (
        (lambda a, b: a > b, te.min_value, np.argmax),
        (lambda a, b: a < b, te.max_value, np.argmin),
    ):
        places, values = places_and_values(data, better, worst)
        assert places.tolist() == wanted(data, axis=1).tolist()
        assert values.tolist() == data[np.arange(6), places].tolist()


def test_a_reduction_of_tuples_with_initial_values():
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]),
        lambda s, p: (te.const(0, s), te.const(1, p)), name="both",
    )  # fmt: skip
    a = te.placeholder((4,), "int32", name="A")
    k = te.reduce_axis((0, 4), "k")
    total, product = te.compute((1,), lambda i: both((a[k], a[k]), axis=k, init=(100, 2)))
    data = np.array([1, 2, 3, 4], "int32")
    results = [np.zeros(1, "int32"), np.zeros(1, "int32")]
    run(te.create_prim_func([a, total, product]), data, *results)
    assert [int(result[0]) for result in results] == [110, 48]


def test_one_output_of_a_reduction_of_tuples_may_stay_inside():
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.max(x[1], y[1])),
        lambda s, m: (te.const(0, s), te.min_value(m)), name="both",
    )  # fmt: skip
    a = te.placeholder((3, 4), "int32", name="A")
    k = te.reduce_axis((0, 4), "k")
    total, largest = te.compute((3,), lambda i: both((a[i, k], a[i, k]), axis=k), name="pair")
    ratio = te.compute((3,), lambda i: total[i] - largest[i], name="rest")
    data, result = RNG.integers(0, 9, (3, 4)).astype("int32"), np.zeros(3, "int32")
    run(te.create_prim_func([a, ratio]), data, result)
    np.testing.assert_array_equal(result, data.sum(1) - data.max(1))


K = te.reduce_axis((0, 4), "k")
A = te.placeholder((4,), name="A")


@pytest.mark.parametrize(
    ("reduction", "error", "message"),
    [
        (lambda: te.sum(A[K], axis=[K, K]), ValueError, "sum: an axis is given twice"),
        (lambda: te.sum(A[K], axis=["k"]), TypeError, "sum: an axis must be a te.reduce_axis"),
        (lambda: te.max(A[K], axis=te.thread_axis((0, 4), "threadIdx.x", "t")), ValueError,
         "max: t is no reduction axis; use te.reduce_axis"),
        (lambda: te.sum(A, axis=K), TypeError, "got the whole tensor A; topi.sum"),
        (lambda: te.sum(A[K], axis=K, init=te.const(1, "int32")), TypeError,
         "sum: a component is float32, its combination is int32"),
        (lambda: te.sum((A[K], A[K]), axis=K), TypeError, "unsupported operand|expected"),
        (lambda: te.comm_reducer(3, lambda t: 0), TypeError, "expected two functions, got int"),
        (lambda: te.comm_reducer(lambda x, y: x, None), TypeError, "two functions, got NoneType"),
        (lambda: te.comm_reducer(lambda x, y: x, lambda s, p: (0,))((A[K], A[K]), axis=K),
         ValueError, "reduce: expected 2 components, got 1"),
    ],
    ids=range(9),
)  # fmt: skip
def test_what_is_no_reduction(reduction, error, message):
    with pytest.raises(error, match=message):
        reduction()


@pytest.mark.parametrize(
    "body",
    [lambda: te.sum(A[K], axis=K) + 1.0, lambda: te.max(te.sum(A[K], axis=K), 0.0),
     lambda: (te.sum(A[K], axis=K), 1.0), lambda: (te.sum(A[K], axis=K), te.max(A[K], axis=K))],
)  # fmt: skip
def test_a_reduction_is_the_whole_body(body):
    with pytest.raises(ValueError, match="must be the whole body|must be the components"):
        te.compute((1,), lambda i: body())


def test_a_reducer_says_what_it_is():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), name="product")
    assert product.__name__ == "product"
    assert "The product of ``expr`` over ``axis``" in product.__doc__
    reduce = product(A[K], axis=K)
    assert [axis.var.name for axis in reduce.axis] == ["k"]
    assert str(reduce.combiner.identity_element[0]) == "T.float32(1.0)"


def test_ranges_that_depend_on_the_element_and_on_each_other():
    """The sum of ``x[row, column]`` over column < row < i."""
    x = te.placeholder((5, 5), "int32", name="x")

    def triangle(i):
        row = te.reduce_axis((0, i), "row")
        column = te.reduce_axis((0, row.var), "column")
        return te.sum(x[row, column], axis=[row, column], init=7)

    out = te.compute((5,), triangle, name="out")
    data, result = RNG.integers(0, 9, (5, 5)).astype("int32"), np.zeros(5, "int32")
    run(te.create_prim_func([x, out]), data, result)
    pairs = list(itertools.combinations(range(5), 2))
    wanted = [7 + sum(data[r, c] for c, r in pairs if r < i) for i in range(5)]
    assert result.tolist() == wanted


def test_a_range_may_not_depend_on_a_later_axis():
    x = te.placeholder((4, 4), name="x")
    column = te.reduce_axis((0, 4), "column")
    row = te.reduce_axis((0, column.var), "row")
    out = te.compute((1,), lambda i: te.sum(x[row, column], axis=[row, column]))
    with pytest.raises(ValueError, match="the range of axis row mentions column, an axis that"):
        te.create_prim_func([x, out])
