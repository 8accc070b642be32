"""Sizes that are symbols, or that the program computes: parts, copies, pools, scales, draws."""

import numpy as np
import pytest

from tests.lib.onnx_models import check, expected, info, model, node, run, uniform
from weft.ir.functor import collect
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import ConstantNeededError, OnnxNodeError
from weft.runtime.faults import IndexFault
from weft.tir.expr import Call, SizeVar

pytestmark = pytest.mark.onnx

X = info("x", shape=["n", "m"])


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_equal_parts_of_a_dimension(size):
    proto = model([node("Split", "x", "a b c", axis=1, num_outputs=3)], [X], ["a", "b", "c"])
    check(proto, uniform(2, size))


def test_parts_whose_sizes_are_dimensions():
    proto = model(
        [node("Shape", "y", "s"), node("Slice", "s zero one", "n"),
         node("Concat", "n one", "sizes", axis=0), node("Split", "x sizes", "a b", axis=1)],
        [X, info("y", shape=["k"])], ["a", "b"],
        constants={"zero": np.array([0]), "one": np.array([1])},
    )  # fmt: skip
    for size in (1, 4):
        check(proto, uniform(2, size + 1), uniform(size))


def test_sizes_of_parts_that_the_data_gives():
    proto = model([node("Split", "x sizes", "a b", axis=1)], [X, info("sizes", "int64", [2])],
                  ["a", "b"])  # fmt: skip
    for sizes in ([1, 3], [4, 0]):
        check(proto, uniform(2, 4), np.array(sizes))


def test_copies_as_often_as_a_dimension_or_the_data_says():
    nodes = [node("Shape", "x", "s"), node("Tile", "x s", "y"), node("Tile", "x times", "z")]
    proto = model(nodes, [X, info("times", "int64", [2])], ["y", "z"])
    for shape, times in (((2, 3), [1, 2]), ((1, 1), [3, 1]), ((3, 2), [0, 2])):
        check(proto, uniform(*shape), np.array(times))
    with pytest.raises(OnnxNodeError, match="repeats: expected 2 numbers, got 3"):
        from_onnx(model([node("Tile", "x times", "y")], [X, info("times", "int64", [3])], ["y"]))


@pytest.mark.parametrize("largest", [0, 1])
def test_as_many_of_the_largest_as_the_data_says(largest):
    proto = model([node("TopK", "x k", "v i", axis=1, largest=largest)],
                  [X, info("k", "int64", [1])], ["v", "i"])  # fmt: skip
    x = np.round(uniform(3, 7) * 2)  # with ties
    for count in (1, 3, 7):
        check(proto, x, np.array([count]))


CUBES = ([2, 3, 4], ["a", "b", 4], ["a", "b", "c"])


@pytest.mark.parametrize("dims", CUBES)
@pytest.mark.parametrize("how", [{}, {"exclusive": 1}, {"reverse": 1}])
def test_running_sums_along_an_axis_that_the_data_tells(dims, how):
    proto = model([node("CumSum", "x axis", "y", **how)],
                  [info("x", shape=dims), info("axis", "int64", [])], ["y"])  # fmt: skip
    for axis in (0, 1, 2, -1):
        check(proto, uniform(2, 3, 4), np.array(axis))
    with pytest.raises(IndexFault, match="index 3 is out of bounds"):
        run(from_onnx(proto), uniform(2, 3, 4), np.array(3))


@pytest.mark.parametrize("dims", CUBES)
def test_new_axes_where_the_data_tells(dims):
    proto = model([node("Unsqueeze", "x axes", "y")],
                  [info("x", shape=dims), info("axes", "int64", [2])], ["y"])  # fmt: skip
    for axes in ([0, 1], [0, 4], [-1, 2], [3, 1], [-1, -2]):
        check(proto, uniform(2, 3, 4), np.array(axes))
    for axes in ([5, 0], [1, 1]):
        with pytest.raises(IndexFault, match="index 3 is out of bounds"):
            run(from_onnx(proto), uniform(2, 3, 4), np.array(axes))
    proto = model([node("Unsqueeze", "x axes", "y")],
                  [info("x", shape=[]), info("axes", "int64", [2])], ["y"])  # fmt: skip
    check(proto, np.array(3, "float32"), np.array([0, 1]))


POOLS = [("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})]


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("name", "attributes"), POOLS)
def test_pools_padded_to_a_size_that_the_run_tells(name, attributes, padding):
    pool = node(name, "x", "y", kernel_shape=[3, 2], strides=[2, 2], auto_pad=padding, **attributes)
    proto = model([pool], [info("x", shape=["n", 2, "h", "w"])], ["y"])
    mod = from_onnx(proto)
    for height, width in ((5, 4), (6, 7), (1, 1)):  # ONNX's reference is wrong for SAME_LOWER
        x = uniform(1, 2, height, width)
        wanted = run(from_onnx(proto, shape_dict={"x": x.shape}), x)
        np.testing.assert_allclose(run(mod, x), wanted, rtol=1e-5, atol=1e-6)


def test_a_pool_of_integers_padded_to_a_size_that_the_run_tells():
    pool = node("MaxPool", "x", "y", kernel_shape=[3, 3], auto_pad="SAME_UPPER")
    proto = model([pool], [info("x", "int8", ["n", 1, "h", 4])], ["y"])
    x = np.arange(-12, 0, dtype="int8").reshape(1, 1, 3, 4)
    largest = x[:, :, [1, 2, 2]][..., [1, 2, 3, 3]]  # below and to the right, where there is more
    np.testing.assert_array_equal(run(from_onnx(proto), x), largest)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_that_the_program_computes(mode):
    attributes = {"coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}
    if mode == "nearest":
        attributes["nearest_mode"] = "floor"
    proto = model(
        [node("Concat", "ones f", "scales", axis=0),
         node("Resize", "x - scales", "y", mode=mode, **attributes)],
        [info("x", shape=["n", 3, "h", "w"]), info("f", shape=[2])], ["y"],
        constants={"ones": np.ones(2, "float32")},
    )  # fmt: skip
    mod = from_onnx(proto)
    for shape, factors in (((1, 3, 4, 5), [2.0, 1.5]), ((2, 3, 6, 4), [0.5, 1.0])):
        x, scale = uniform(*shape), np.array(factors, "float32")
        result = run(mod, x, scale)
        (wanted,) = expected(proto, x, scale)
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_scales_that_decide_how_many_neighbours_count_must_be_known():
    proto = model([node("Resize", "x - f", "y", mode="linear", antialias=1)],
                  [info("x", shape=[1, 1, 4, 4]), info("f", shape=[4])], ["y"])  # fmt: skip
    with pytest.raises(ConstantNeededError, match="input scales must be known at import"):
        from_onnx(proto)


def test_a_number_of_draws_that_the_run_tells():
    nodes = [node("RandomNormalLike", "x", "y", mean=4.0, scale=0.5),
             node("RandomUniformLike", "x", "z", low=2.0, high=3.0)]  # fmt: skip
    mod = from_onnx(model(nodes, [X], ["y", "z"]))
    for shape in ((3, 40), (50, 2)):
        normal, even = run(mod, uniform(*shape))
        assert (normal.shape, even.shape, normal.dtype) == (shape, shape, np.float32)
        assert 3.5 < normal.mean() < 4.5
        assert ((even >= 2) & (even < 3)).all()
        assert np.unique(even).size > 90


COUNTS = {
    "Range": [node("Range", "zero k one", "y")],
    "ConstantOfShape": [node("ConstantOfShape", "v", "y")],
    "Expand": [node("Expand", "one v", "y")], "OneHot": [node("OneHot", "zero k pair", "y")],
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_the_run_tells_is_known_not_to_be_negative(name):
    proto = model(
        [node("Unsqueeze", "k zeros", "v"), *COUNTS[name]], [info("k", "int64", [])], ["y"],
        constants={"zero": np.array(0), "one": np.array(1), "zeros": np.array([0]),
                   "pair": np.array([0, 1])},
    )  # fmt: skip
    [count] = from_onnx(proto)["main"].body.body.struct_info.shape.values
    assert type(count) is SizeVar


def test_a_shape_made_of_a_count_has_no_choices():
    """Whether such an extent is 0, or -1, was asked again at each Reshape after another."""
    again = [("y", "a"), ("a", "b"), ("b", "c")]
    proto = model(
        [node("Range", "zero k one", "r"), node("Unsqueeze", "r ones", "u"),
         node("Tile", "u times", "y"),
         *[part for x, y in again
           for part in (node("Shape", x, f"{x}_s"), node("Reshape", f"{x} {x}_s", y))]],
        [info("k", "int64", [])], ["c"],
        constants={"zero": np.array(0), "one": np.array(1), "ones": np.array([1]),
                   "times": np.array([20, 3])},
    )  # fmt: skip
    rows, columns = from_onnx(proto)["main"].body.body.struct_info.shape.values
    assert columns == 3
    assert not collect(rows, Call)
    for count in (0, 1, 4):
        check(proto, np.array(count))
