"""Nodes that are not as ONNX has them: an error of weft's that names the node, never a result."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.lib.onnx_models import info, model, node, run, uniform
from weft import TVMError
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.backend import WeftBackend
from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.relax.frontend.onnx.registry import converter

pytestmark = pytest.mark.onnx

INTEGERS = {"a": np.array([1, 2, 3]), "four": np.array([4]), "two": np.array([2])}
MATRIX = info("x", shape=[2, 3])
IMAGE = info("x", shape=[1, 1, 3, 3])
KERNEL = np.ones((1, 1, 3, 3), "float32")

KNOWN = [
    (node("Reshape", "a four", "y"), "cannot reshape"),
    (node("Squeeze", "a zero", "y"), "axis 0 has the extent 3"),
    (node("Expand", "a two", "y"), "cannot broadcast"),
    (node("Gather", "a zero", "y", axis=3), "axis 3 is outside"),
    (node("Slice", "a zero four zero zero", "y"), "stride must not be 0"),
    (node("Cast", "a", "y", to=14), "no tensors of complex64"),
    (node("Range", "one four none", "y"), "delta: expected a step that is not 0"),
]


@pytest.mark.parametrize(("call", "message"), KNOWN, ids=lambda item: getattr(item, "op_type", ""))
def test_arithmetic_at_import_leaves_refusals_to_the_converter(call, message):
    constants = {**INTEGERS, "zero": np.array([0]), "one": np.array(1), "none": np.array(0)}
    with pytest.raises(TVMError, match=message):
        run(from_onnx(model([call], [], ["y"], constants=constants)))


def test_an_operator_of_a_later_opset_is_named_with_it():
    """An exporter wrote CumProd into files of opset 23."""
    proto = model([node("CumProd", "x one", "y")], [MATRIX], ["y"], 23, {"one": np.array(1)})
    with pytest.raises(TVMError, match="CumProd, once, .*; nearest: CumProd of opset 26"):
        from_onnx(proto)


@pytest.mark.parametrize("sizes", [[1, 1], [2, 2], [4, -1], [1, 1, 1]])
def test_sizes_of_parts_make_up_the_axis(sizes):
    constants = {"sizes": np.array(sizes)}
    call = node("Split", "x sizes", "y z", axis=1)
    with pytest.raises(TVMError, match="split: expected"):
        from_onnx(model([call], [MATRIX], ["y", "z"], constants=constants))
    if len(sizes) == 2:
        call = node("SplitToSequence", "x sizes", "y", axis=1)
        with pytest.raises(TVMError, match="split: expected sizes"):
            from_onnx(model([call], [MATRIX], ["y"], constants=constants))


REFUSED = [
    (node("TopK", "x minus", "y i"), MATRIX, "K: expected 0 to 3, got -1"),
    (node("TopK", "x many", "y i"), MATRIX, "K: expected 0 to 3, got 9"),
    (node("Flatten", "x", "y", axis=3), MATRIX, "axis 3 is outside"),
    (node("Flatten", "x", "y", axis=-3), MATRIX, "axis -3 is outside"),
    (node("OneHot", "x many pair", "y", axis=4), MATRIX, "axis 4 is outside"),
    (node("Gelu", "x", "y", approximate="fast"), MATRIX, "expected none or tanh"),
    (node("Conv", "x w", "y", pads=[1, 1]), IMAGE, "pads: expected 4 numbers"),
    (node("Conv", "x w", "y", strides=[1]), IMAGE, "strides: expected 2 numbers"),
    (node("Conv", "x w", "y", dilations=[0, 1]), IMAGE, "dilations: expected 2 numbers of at"),
    (node("MaxPool", "x", "y", kernel_shape=[2, 2], pads=[1]), IMAGE, "pads: expected 4"),
    (node("MaxPool", "x", "y", kernel_shape=[1, 9], strides=[1, 8]), IMAGE, "9 .*set ceil_mode=1"),
    (node("AveragePool", "x", "y", kernel_shape=[1, 9]), IMAGE, r"axis 3: .* data, pad it\n"),
    (node("LpPool", "x", "y", kernel_shape=[9, 1], ceil_mode=1), IMAGE, "axis 2: expected at "),
    (node("Pad", "x ones - minus9", "y"), MATRIX, "axis -9 is outside"),
    (node("Resize", "x - half", "y", axes=[7]), MATRIX, "axis 7 is outside"),
    (node("ConvTranspose", "x w", "y", auto_pad="SAME"), IMAGE, "auto_pad: expected"),
    (node("ConvTranspose", "x w", "y", strides=[2]), IMAGE, "strides: expected 2 numbers"),
]


@pytest.mark.parametrize(("call", "data", "message"), REFUSED)
def test_attributes_and_inputs_out_of_range(call, data, message):
    constants = {
        "w": KERNEL, "minus": np.array([-1]), "many": np.array([9]), "pair": np.zeros(2, "float32"),
        "ones": np.array([1, 1]), "minus9": np.array([-9]), "half": np.array([0.5], "float32"),
    }  # fmt: skip
    outputs = list(call.output)
    with pytest.raises(TVMError, match=message):
        from_onnx(model([call], [data], outputs, constants=constants))


def test_softmax_of_a_flattened_axis_that_is_not_there():
    proto = model([node("Softmax", "x", "y", axis=5)], [MATRIX], ["y"], opset=11)
    with pytest.raises(TVMError, match="axis 5 is outside"):
        from_onnx(proto)


def test_the_tensor_of_an_attribute_that_does_not_fit_its_shape():
    tensor = helper.make_tensor("t", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    tensor.dims[0] = 5
    with pytest.raises(OnnxModelError, match="tensor of an attribute, 't': its data does not"):
        from_onnx(model([node("Constant", "", "y", value=tensor)], [], ["y"]))


def test_text_of_an_attribute_is_no_number():
    tensor = helper.make_tensor("t", onnx.TensorProto.STRING, [2], [b"a", b"b"])
    calls = [node("Constant", "", "s", value=tensor), node("Add", "s s", "y")]
    with pytest.raises(TVMError, match="a tensor of string cannot be computed with"):
        from_onnx(model(calls, [], ["y"]))


def test_a_sparse_initializer_with_an_index_outside():
    proto = model([node("Relu", "v", "y")], [], ["y"])
    values = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [50])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [5]))
    with pytest.raises(OnnxModelError, match="sparse tensor 'v': its indices do not fit"):
        from_onnx(proto)


def test_an_unknown_node_without_outputs():
    proto = model([helper.make_node("Foo", ["x"], [])], [MATRIX], ["x"])
    with pytest.raises(TVMError, match="no converter for 1 operator"):
        from_onnx(proto)


def test_a_path_that_the_system_refuses():
    with pytest.raises(OnnxModelError, match=r"xxx\.\.\.: expected the file of an ONNX model"):
        from_onnx("x" * 5000)


@pytest.mark.parametrize("feeds", [{"x": 1}, {"x": 1, "y": 1, "z": 1}])
def test_inputs_of_a_run_that_are_missing_or_unknown(feeds):
    proto = model([node("Add", "x y", "s")], [info("x", shape=[2]), info("y", shape=[2])], ["s"])
    prepared = WeftBackend.prepare(proto)
    with pytest.raises(OnnxModelError, match="expected the inputs x, y; '[yz]' is"):
        prepared.run({name: uniform(2) for name in feeds})


def test_two_converters_of_one_operator_and_opset():
    with pytest.raises(TVMError, match="from opset 1 on of 'Relu' is already registered"):
        converter("Relu")(lambda context, x: x)
