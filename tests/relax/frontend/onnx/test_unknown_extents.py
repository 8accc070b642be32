"""Extents that only the run tells: what is decided stays as it is, the rest becomes symbols."""

import numpy as np
import pytest

from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft.ir.functor import collect
from weft.relax.expr import Call
from weft.relax.frontend.onnx import from_onnx
from weft.support.errors import TVMError

pytestmark = pytest.mark.onnx


def operators_of(mod):
    return [str(call.op.name) for call in collect(mod["main"], Call)]


def returned(proto):
    return str(from_onnx(proto)["main"].body.body.struct_info)


def test_a_shape_that_is_cast_to_int32_stays_a_shape():
    proto = model(
        [node("Shape", "x", "s"), node("Cast", "s", "t", to=6), node("Slice", "t zero one", "n"),
         node("Concat", "n rest", "u", axis=0), node("Cast", "u", "v", to=7),
         node("Reshape", "x v", "y")],
        [info("x", shape=["n", 2, 3])], ["y"],
        constants={"zero": np.array([0]), "one": np.array([1]),
                   "rest": np.array([6], "int32")},
    )  # fmt: skip
    assert operators_of(from_onnx(proto)) == ["relax.reshape"]
    for count in (1, 4):
        check(proto, uniform(count, 2, 3))


@pytest.mark.parametrize(
    ("start", "delta", "extent"), [(0, 1, "n"), (1, 2, None), (-3, 2, None), (0, -1, None)]
)
def test_a_range_up_to_a_dimension_has_a_known_number_of_elements(start, delta, extent):
    proto = model(
        [node("Shape", "x", "s"), node("Gather", "s zero", "n"),
         node("Range", "start n delta", "y")], [info("x", shape=["n", 2])], ["y"],
        constants={"zero": np.array(0), "start": np.array(start), "delta": np.array(delta)},
    )  # fmt: skip
    mod = from_onnx(proto)
    assert "relax.tensor_to_shape" not in operators_of(mod)
    if extent is not None:
        assert returned(proto) == f'R.Tensor(({extent},), dtype="int64")'
    for count in (1, 4, 7):
        check(proto, uniform(count, 2))


def test_positions_up_to_the_length_of_the_sequence_are_as_many_as_it_has():
    proto = model(
        [node("Shape", "x", "s"), node("Slice", "s one two", "t"),
         node("Slice", "positions zero t one", "p"), node("Add", "x p", "sum"),
         node("LayerNormalization", "sum scale", "y")],
        [info("x", shape=["b", "t", 8])], ["y"],
        constants={"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]),
                   "positions": uniform(1, 16, 8, seed=1), "scale": uniform(8, seed=2)},
    )  # fmt: skip
    assert returned(proto) == 'R.Tensor((b, t, 8), dtype="float32")'
    for batch, length in ((1, 1), (2, 5), (3, 16)):
        check(proto, uniform(batch, length, 8), atol=1e-5)
    with pytest.raises(TVMError):
        run(from_onnx(proto), uniform(1, 17, 8))


UNDECIDED = [
    ([node("Add", "a b", "y")], ("n", 3, 4), ("m", 3, 4)),
    ([node("Add", "a b", "c"), node("Mul", "c a", "y")], ("n", 4), ("m", 4)),
    ([node("MatMul", "a b", "c"), node("Softmax", "c", "y")], ("n", 2, 3), ("m", 3, 4)),
    ([node("Equal", "a b", "c"), node("Where", "c a b", "y")], ("n", 4), ("m", 4)),
    ([node("Add", "a b", "c"), node("Shape", "c", "s"), node("Reshape", "c s", "y")],
     ("n", 4), ("m", 1)),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "first", "second"), UNDECIDED)
def test_extents_that_may_or_may_not_be_equal(nodes, first, second):
    proto = model(nodes, [info("a", shape=first), info("b", shape=second)], ["y"])
    for sizes in ({"n": 3, "m": 3}, {"n": 1, "m": 4}, {"n": 5, "m": 1}, {"n": 1, "m": 1}):
        shapes = [[sizes.get(dim, dim) for dim in dims] for dims in (first, second)]
        check(proto, uniform(*shapes[0]), uniform(*shapes[1], seed=1))


def test_what_is_decided_of_a_broadcast_stays_a_number():
    proto = model(
        [node("Add", "a b", "c"), node("Resize", "c - scales", "y", mode="nearest")],
        [info("a", shape=["n", 6, "h", 8]), info("b", shape=["n", 6, "k", 8])], ["y"],
        constants={"scales": np.array([1, 1, 2, 2], "float32")},
    )  # fmt: skip
    resized = from_onnx(proto)["main"].body.body.struct_info
    assert str(resized).replace("size_0", "s") == 'R.Tensor((n, 6, s * 2, 16), dtype="float32")'
    for height, other in ((3, 3), (1, 4), (2, 1)):
        check(proto, uniform(2, 6, height, 8), uniform(2, 6, other, 8, seed=1))


def test_extents_that_differ_when_the_model_runs_are_refused():
    proto = model([node("Add", "a b", "c"), node("Relu", "c", "y")],
                  [info("a", shape=["n", 4]), info("b", shape=["m", 4])], ["y"])  # fmt: skip
    with pytest.raises(TVMError, match="out of bounds for buffer"):
        run(from_onnx(proto), uniform(2, 4), uniform(3, 4))


def test_the_larger_of_two_parts_of_one_extent():
    """As in a network that joins a coarse level, doubled, with the finer one."""
    up = node("Resize", "d - scales", "u", mode="nearest")
    pool = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}
    proto = model(
        [node("MaxPool", "x", "d", **pool), up, node("Add", "u x", "s"), node("Shape", "s", "y")],
        [info("x", shape=[1, 2, "h", "w"])], ["y"],
        constants={"scales": np.array([1, 1, 2, 2], "float32")},
    )  # fmt: skip
    for height, width in ((2, 2), (4, 6)):
        check(proto, uniform(1, 2, height, width))


@pytest.mark.parametrize(
    ("pads", "slices"),
    [([0, 0, 0, 0], 0), ([1, 1, 0, 0], 0), ([0, 0, 1, 1], 0), ([0, 0, 2, 2], 1)],
    ids=str,
)
def test_rounding_up_cuts_windows_only_where_one_may_start_in_the_padding(pads, slices):
    """A window of three with steps of two starts past the data only if two or more are added."""
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": pads}
    proto = model(
        [node("MaxPool", "x", "d", **pool), node("MaxPool", "d", "y", **pool)],
        [info("x", shape=[1, 2, "h", "w"])], ["y"],
    )  # fmt: skip
    names = operators_of(from_onnx(proto))
    assert names.count("relax.nn.max_pool2d") == 2
    assert names.count("relax.strided_slice") == 2 * slices
    for height, width in ((5, 6), (7, 8), (12, 9), (13, 11)):
        check(proto, uniform(1, 2, height, width))


def test_bounds_of_a_slice_may_be_the_number_of_a_step():
    """A number without dimensions, as tf2onnx slices by it."""
    body = model(
        [node("Add", "i one", "next"), node("Slice", "x i next zero", "row"),
         node("Reshape", "row three", "flat"), node("Identity", "go", "on")],
        [info("i", "int64", [1]), info("go", "bool", [])], ["on", "flat"],
    ).graph  # fmt: skip
    for result, shape in zip(body.output, ((), (3,)), strict=True):
        result.CopyFrom(info(result.name, "float32" if shape else "bool", shape))
    constants = {"one": [1], "zero": [0], "three": [3], "yes": True}
    proto = model(
        [node("Loop", "count yes", "y", body=body)],
        [info("x", shape=[4, 3]), info("count", "int64", [])], ["y"],
        constants={name: np.array(value) for name, value in constants.items()},
    )  # fmt: skip
    x = uniform(4, 3)
    assert np.array_equal(run(from_onnx(proto), x, np.array(4)), x)


def test_a_slice_has_a_bound_for_each_of_its_axes():
    """``at[n : n + 1]`` has an element for each axis, though its extent is none of the graph's."""
    proto = model(
        [node("Slice", "at n m", "start"), node("Add", "start one", "end"),
         node("Slice", "x start end axes", "y")],
        [info("x", shape=[5, 3]), info("at", "int64", ["k"]), info("n", "int64", [1]),
         info("m", "int64", [1])],
        ["y"], constants={"one": np.array([1]), "axes": np.array([0])},
    )  # fmt: skip
    at, x = np.array([4, 0, 2]), uniform(5, 3)
    mod = from_onnx(proto)
    for n in range(3):
        got = run(mod, x, at, np.array([n]), np.array([n + 1]))
        assert np.array_equal(got, x[at[n] : at[n] + 1])
    with pytest.raises(TVMError, match=r"expected shape \(1,\), got \(2,\)"):
        run(mod, x, at, np.array([0]), np.array([2]))
