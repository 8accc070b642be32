"""Operators that mean something else in another opset: attributes that became inputs, defaults."""

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import check_node, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.registry import find_converter

pytestmark = pytest.mark.onnx


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_flattens_until_opset_12(name):
    check_node(name, [uniform(2, 3, 4)], opset=13)
    x = uniform(2, 3, 4)
    proto = model([node(name, "x", "y")], [info("x", shape=["n", 3, 4])], ["y"], opset=11)
    flat = model([node(name, "x", "y")], [info("x", shape=["n", 12])], ["y"], opset=13)
    made = run(from_onnx(proto), x)
    np.testing.assert_allclose(made.reshape(2, 12), run(from_onnx(flat), x.reshape(2, 12)))


@pytest.mark.parametrize(("opset", "axes"), [(11, "attribute"), (13, "input"), (21, "input")])
def test_axes_of_squeeze_and_reduce_sum(opset, axes):
    x = uniform(1, 3, 1)
    for name, given in ("Squeeze", [0]), ("Unsqueeze", [0, 2]), ("ReduceSum", [1]):
        if axes == "attribute":
            check_node(name, [x], opset=opset, axes=given)
        else:
            check_node(name, [x], opset=opset, constants={"axes": np.array(given)})


@pytest.mark.parametrize(("opset", "kind"), [(11, "attribute"), (18, "input")])
def test_axes_of_other_reductions(opset, kind):
    given = {"axes": [1]} if kind == "attribute" else {"constants": {"axes": np.array([1])}}
    check_node("ReduceMax", [uniform(2, 3)], opset=opset, keepdims=0, **given)


def test_clip_had_attributes():
    check_node("Clip", [uniform(5)], opset=6, min=-0.5, max=0.5)
    limits = {"low": np.array(-0.5, "float32"), "high": np.array(0.5, "float32")}
    check_node("Clip", [uniform(5)], opset=11, constants=limits)


def test_slice_had_attributes():
    check_node("Slice", [uniform(4, 5)], opset=9, starts=[1, 0], ends=[3, -1], axes=[0, 1])


def test_pad_had_attributes():
    x = uniform(2, 3)
    proto = model([node("Pad", "x", "y", pads=[0, 1, 1, 0], value=2.0)], [info("x", shape=[2, 3])],
                  ["y"], opset=2)  # fmt: skip
    wanted = np.pad(x, [(0, 1), (1, 0)], constant_values=2)
    np.testing.assert_array_equal(run(from_onnx(proto), x), wanted)


def test_binary_operators_aligned_by_axis_until_opset_6():
    x, y = uniform(2, 3, 4), uniform(3, seed=1)
    call = node("Add", "x y", "z", axis=1, broadcast=1)
    proto = model([call], [info("x", shape=[2, 3, 4]), info("y", shape=[3])], ["z"], opset=6)
    np.testing.assert_allclose(run(from_onnx(proto), x, y), x + y[:, None])


def test_reshape_had_an_attribute():
    x = uniform(2, 6)
    proto = model([node("Reshape", "x", "y", shape=[0, 2, -1])], [info("x", shape=[2, 6])], ["y"],
                  opset=1)  # fmt: skip
    np.testing.assert_array_equal(run(from_onnx(proto), x), x.reshape(2, 2, 3))


def test_group_normalization_scales_groups_in_opset_18_and_channels_from_21():
    x = uniform(2, 4, 3)
    groups = model(
        [node("GroupNormalization", "x s b", "y", num_groups=2)],
        [info("x", shape=[2, 4, 3]), info("s", shape=[2]), info("b", shape=[2])], ["y"], opset=18,
    )  # fmt: skip
    channels = model(
        [node("GroupNormalization", "x s b", "y", num_groups=2)],
        [info("x", shape=[2, 4, 3]), info("s", shape=[4]), info("b", shape=[4])], ["y"], opset=21,
    )  # fmt: skip
    s, b = uniform(2), uniform(2, seed=1)
    np.testing.assert_allclose(
        run(from_onnx(groups), x, s, b),
        run(from_onnx(channels), x, np.repeat(s, 2), np.repeat(b, 2)), rtol=1e-5, atol=1e-6,
    )  # fmt: skip


def test_top_k_had_an_attribute():
    x = uniform(2, 5)
    proto = model([node("TopK", "x", "v i", k=2)], [info("x", shape=[2, 5])], ["v", "i"], opset=9)
    values, indices = run(from_onnx(proto), x)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :2])
    np.testing.assert_array_equal(indices, np.argsort(-x)[:, :2])


def test_dropout_is_the_identity_in_every_opset():
    for opset in (1, 6, 7, 10, 12, 22):
        proto = model([node("Dropout", "x", "y")], [info("x", shape=[3])], ["y"], opset=opset)
        np.testing.assert_array_equal(run(from_onnx(proto), uniform(3)), uniform(3))


def test_the_newest_converter_that_is_not_newer_than_the_model():
    since = [find_converter("", "Softmax", opset).since for opset in (1, 11, 12, 13, 28)]
    assert since == [1, 1, 1, 13, 13]
    assert find_converter("", "TensorScatter", 23) is None


def test_defaults_are_those_of_the_schema_of_the_opset():
    from weft.relax.frontend.onnx.attributes import default_attributes

    assert default_attributes("", "Softmax", 11)["axis"] == 1
    assert default_attributes("", "Softmax", 13)["axis"] == -1
    assert default_attributes("", "Nothing", 13) == {}
    x = uniform(2, 3, 4)
    call = helper.make_node("Concat", ["x", "x"], ["y"])
    proto = model([call], [info("x", shape=[2, 3, 4])], ["y"], opset=3)
    assert run(from_onnx(proto), x).shape == (2, 6, 4)


def test_concat_of_known_values_had_a_default_axis():
    constants = {"a": np.array([[1, 2]]), "b": np.array([[3, 4]])}
    proto = model([node("Concat", "a b", "y")], [], ["y"], opset=3, constants=constants)
    np.testing.assert_array_equal(run(from_onnx(proto)), [[1, 2, 3, 4]])


def test_known_values_aligned_by_axis_until_opset_6():
    constants = {"a": np.array([[1, 2, 3], [4, 5, 6]]), "b": np.array([10, 20])}
    call = node("Add", "a b", "y", axis=0, broadcast=1)
    proto = model([call], [], ["y"], opset=6, constants=constants)
    np.testing.assert_array_equal(run(from_onnx(proto)), [[11, 12, 13], [24, 25, 26]])


def test_integers_are_divided_towards_zero_in_every_opset():
    for opset in 6, 14:
        proto = model([node("Div", "x y", "z")], [info("x", "int64", [2]), info("y", "int64", [2])],
                      ["z"], opset=opset)  # fmt: skip
        made = run(from_onnx(proto), np.array([-7, 7]), np.array([2, -2]))
        np.testing.assert_array_equal(made, [-3, -3])
