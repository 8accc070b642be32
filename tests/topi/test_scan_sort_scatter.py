import numpy as np
import pytest

import weft
from weft import te, topi
from weft.ir.functor import collect
from weft.tir.buffer import BufferLoad
from weft.tir.stmt import For


def test_cumsum(check, floats):
    x = floats(2, 5, 3)
    check(topi.cumsum, [x], np.cumsum(x, 1), 1)
    check(topi.cumsum, [x], np.cumsum(x))
    check(topi.cumsum, [x], np.cumsum(x, 1) - x, 1, None, True)
    check(topi.cumprod, [x], np.cumprod(x, -1), -1)
    check(topi.cumsum, [floats(2, 0)], np.zeros((2, 0)), 1)


@pytest.mark.parametrize("shape", [(3, 5, 32), (2, 4, 12), (3, 6, 17), (8, 9), (2, 12, 7), (6,)])
def test_running_sums_of_rows_side_by_side(check, floats, shape):
    x = floats(*shape)
    for axis in range(x.ndim):
        check(topi.cumsum, [x], np.cumsum(x, axis), axis)
    check(topi.cumprod, [x], np.cumprod(x, -1), -1)


@pytest.mark.parametrize("shape", [(16, 23), (3, 8, 8), (12, 7), (4, 3), (8, 1)])
@pytest.mark.parametrize("dtype", ["float16", "int8", "int64", "bool"])
def test_running_sums_of_rows_that_are_lanes(check, ints, shape, dtype):
    x = (ints(*shape, high=5) - 2).astype(dtype)
    kind = "int32" if dtype == "bool" else dtype
    sums = np.cumsum(x, -1, dtype=kind)
    check(topi.cumsum, [x], sums, -1)
    check(topi.cumsum, [x], sums - x.astype(kind), -1, None, True)


def test_a_scan_is_a_block_with_an_ordered_axis_in_the_root():
    x = te.placeholder((2, 5, 3), name="x")
    twice = [topi.cumsum(x, 1), topi.cumprod(x, -1, "float32")]
    sch = weft.tir.Schedule(te.create_prim_func([x, *twice]))
    names = [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["cumsum_generic", "cumprod_generic"]
    kinds = [axis.iter_type.name for axis in sch.get(sch.get_block("cumsum_generic")).iter_vars]
    assert kinds == ["DataPar", "DataPar", "Ordered"]
    running = sch.get(sch.get_block("root")).alloc_buffers
    shapes = [("float64", [2, 3]), ("float64", [2, 5])]
    assert [(item.dtype, list(item.shape)) for item in running] == shapes


def test_blocks_of_two_scans_have_names_of_their_own():
    x = te.placeholder((4, 8), name="x")
    sch = weft.tir.Schedule(te.create_prim_func([x, topi.cumsum(topi.cumsum(x, 0), 1)]))
    names = [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["cumsum_generic", "cumsum_generic_1"]


@pytest.mark.parametrize(("dtype", "sizes"), [("float32", (0, 1, 7, 17)), ("float16", (23,))])
def test_running_sums_of_unknown_length(dtype, sizes):
    x = te.placeholder((8, te.var("n")), dtype, name="x")
    built = weft.build(te.create_prim_func([x, topi.cumsum(x, 1)]))
    for size in sizes:
        data = np.random.default_rng(size).normal(size=(8, size)).astype(dtype)
        result = weft.nd.array(np.zeros_like(data))
        built["main"](weft.nd.array(data), result)
        expected = np.cumsum(data, 1, "float64" if dtype == "float32" else "float32")
        np.testing.assert_array_equal(result.numpy(), expected.astype(dtype))


def test_cumsum_when_dtype_is_given(check, ints):
    x = ints(4)
    check(topi.cumsum, [x], np.cumsum(x), 0, "float32")


def test_running_sums_keep_their_digits(check):
    ones = np.full(5000, 1.0, "float16")
    check(topi.cumsum, [ones], np.arange(1, 5001).astype("float16"), 0)
    tenths = np.full(20000, 0.1, "float32")
    check(topi.cumsum, [tenths], np.cumsum(tenths.astype("float64")), 0)


@pytest.mark.parametrize("shape", [(3, 7), (1, 1), (2, 0), (5,)])
def test_sort(check, floats, shape):
    x = floats(*shape)
    check(topi.sort, [x], np.sort(x, -1))
    check(topi.sort, [x], -np.sort(-x, -1), -1, False)


def test_argsort_when_elements_are_equal(check, ints):
    x = ints(2, 9, high=3)
    check(lambda a: topi.argsort(a, axis=1, dtype="int32"), [x], np.argsort(x, 1, kind="stable"))
    check(
        lambda a: topi.argsort(a, axis=0, is_ascend=False, dtype="int64"), [x],
        np.argsort(-x, 0, kind="stable"),
    )  # fmt: skip


def test_sort_when_nan_counts_as_largest(check, floats):
    x = floats(6)
    x[2] = np.nan
    check(topi.sort, [x], np.sort(x))


def test_topk(check, floats):
    x = floats(2, 5)
    values, indices = -np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]
    check(topi.topk, [x], [values, indices], 2, 1)
    check(topi.topk, [x], values, 2, 1, "values")
    check(topi.topk, [x], np.sort(x, 1), 0, 1, "values", True)


@pytest.mark.parametrize("k", [1, 4, 32, 33, 50, 51, 200])
@pytest.mark.parametrize("is_ascend", [False, True])
def test_few_and_many_first_elements_keep_the_order_of_equal_ones(check, k, is_ascend):
    x = np.random.default_rng(k).integers(0, 6, (2, 200)).astype("float32")
    x[0, [3, 9]], x[1, 5] = np.nan, np.inf
    numbers = np.where(np.isnan(x), 1e9, x)  # NaN counts as the largest
    places = np.argsort(numbers if is_ascend else -numbers, 1, kind="stable")[:, :k]
    values = np.take_along_axis(x, places, 1)
    check(topi.topk, [x], [values, places], k, 1, "both", is_ascend)


@pytest.mark.parametrize("reduction", ["update", "add"])
def test_scatter_elements(check, floats, ints, reduction):
    data, indices, updates = floats(3, 4), ints(2, 4, low=-3, high=3), floats(2, 4)
    expected = data.copy()
    for i in range(2):
        for j in range(4):
            old = expected[indices[i, j], j] if reduction == "add" else 0
            expected[indices[i, j], j] = old + updates[i, j]
    check(topi.scatter_elements, [data, indices, updates], expected, 0, reduction)


def test_scatter_nd(check, floats):
    data, updates, indices = floats(3, 4), floats(2), np.array([[0, 2], [1, 3]], "int32")
    expected = data.copy()
    expected[0, 1], expected[2, 3] = updates
    check(topi.scatter_nd, [data, indices, updates], expected)


@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 0, 3), (4,), (4, 1)])
def test_slices_are_written_whole_and_the_last_one_stays(check, floats, shape):
    data, values = floats(*shape), floats(5, *shape[1:])
    places = np.array([3, 0, -1, 1, 3], "int64")
    expected = data.copy()
    for place, value in zip(places, values, strict=True):
        expected[place] = value
    check(lambda a, i, v: topi.index_put(a, [i], v), [data, places, values], expected)
    check(topi.scatter_nd, [data, places[None], values], expected)
    np.add.at(expected := data.copy(), places, values)
    check(lambda a, i, v: topi.index_put(a, [i], v, True), [data, places, values], expected)


def test_the_place_of_a_slice_is_read_once():
    data, places = te.placeholder((8, 64), name="data"), te.placeholder((5,), "int64", "places")
    values = te.placeholder((5, 64), name="values")
    out = topi.index_put(data, [places], values)
    body = te.create_prim_func([data, places, values, out]).body
    loops = [loop for loop in collect(body, For) if not collect(loop.body, For)]
    assert len(loops) == 2  # the copy of the data, and a slice
    read = {load.buffer.name for loop in loops for load in collect(loop, BufferLoad)}
    assert "places" not in read
    assert "places" in {load.buffer.name for load in collect(body, BufferLoad)}


def test_masked_scatter(check, floats):
    data, source = floats(3, 4), floats(7)
    mask = np.arange(12).reshape(3, 4) % 5 == 1
    expected = data.copy()
    expected[mask] = source[: mask.sum()]
    check(topi.masked_scatter, [data, mask, source], expected)


def test_errors_name_the_numbers():
    x = te.placeholder((2, 3))
    with pytest.raises(ValueError, match="expected both, values or indices"):
        topi.topk(x, 1, ret_type="all")
    with pytest.raises(IndexError, match="sort: axis 2"):
        topi.sort(x, 2)
    with pytest.raises(ValueError, match="expected the reduction"):
        topi.scatter_elements(x, te.placeholder((2, 3), "int32"), x, 0, "minus")
