"""Weights are called by the names that the model gives them, through what is computed of them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir
from weft.script import relax as R
from weft.viz.picture import picture_of


@ir.ir_module
class Layer:
    @R.function
    def main(
        x: R.Tensor((4, 8), "float32"),
        weight: R.Tensor((8, 8), "float32"),
        scale: R.Tensor((8,), "float32"),
    ):
        with R.dataflow():
            scaled = R.multiply(weight, scale)
            out = R.matmul(x, scaled)
            R.output(out)
        return out


def names_in(data) -> list[str]:
    return [row["name"].split(" ")[0] for row in data["memory"]["weights"]]


def test_a_weight_that_is_computed_has_the_name_of_the_largest_it_is_made_of():
    values = {"weight": np.ones((8, 8), "float32"), "scale": np.ones(8, "float32")}
    data = picture_of(relax.transform.BindParams("main", values)(Layer)).data
    assert names_in(data) == ["weight"]
    (kernel,) = data["kernels"]
    (row,) = kernel["weights"]
    assert row["weight"].startswith("weight float32[")
    assert row["kind"] in ("transformed", "packed")
    assert row["parameter"] in data["texts"][kernel["scheduled"]]


def test_parameters_of_torch_have_their_names():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential()
    net.add_module("stem", torch.nn.Conv2d(3, 8, 3))
    net.add_module("norm", torch.nn.BatchNorm2d(8))
    net.add_module("flat", torch.nn.Flatten())
    net.add_module("head", torch.nn.Linear(8 * 6 * 6, 10))
    model = weft.compile(net.eval(), (torch.ones(1, 3, 8, 8),), cache=False)
    data = model.viz().data
    names = names_in(data)
    assert {"stem.weight", "head.weight", "head.bias"} <= set(names)
    assert not any(name.startswith("constant") for name in names), names
    taken = {row["weight"].split(" ")[0] for kernel in data["kernels"] for row in kernel["weights"]}
    assert taken == set(names)


def test_initializers_of_onnx_have_their_names():
    onnx = pytest.importorskip("onnx")
    info = onnx.helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.ones((8, 5), "float32"), "fc/kernel:0")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "fc/kernel:0"], ["y"])],
        "one",
        [info("x", onnx.TensorProto.FLOAT, [2, 8])],
        [info("y", onnx.TensorProto.FLOAT, [2, 5])],
        [weight],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    data = picture_of(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)).data
    assert names_in(data) == ["fc/kernel:0"]


def matmul_model(nodes, initializers, opsets=(("", 17),), kind=1):
    """A model of one input x (2, 8) and one result y."""
    onnx = pytest.importorskip("onnx")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "computed", [info("x", kind, [2, 8])], [info("y", kind, None)], initializers
    )
    opset = [onnx.helper.make_opsetid(*pair) for pair in opsets]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_weights_in_nodes_of_onnx_have_the_names_of_their_results():
    onnx = pytest.importorskip("onnx")
    weight = onnx.numpy_helper.from_array(np.ones((8, 5), "float32"))
    nodes = [
        onnx.helper.make_node("Constant", [], ["layer/kernel"], value=weight),
        onnx.helper.make_node("MatMul", ["x", "layer/kernel"], ["y"]),
    ]
    assert names_in(picture_of(matmul_model(nodes, [])).data) == ["layer/kernel"]


def test_weights_that_the_onnx_importer_computes_have_the_name_of_the_largest_they_are_made_of():
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    packed = onnx.numpy_helper.from_array(rng.integers(0, 255, (5, 1, 16), "uint8"), "head.packed")
    scales = onnx.numpy_helper.from_array(np.ones((5, 1), "float32"), "head.scales")
    small = onnx.numpy_helper.from_array(np.ones(5, "float64"), "shift")
    nodes = [
        onnx.helper.make_node(
            "MatMulNBits", ["x", "head.packed", "head.scales"], ["z"], domain="com.microsoft",
            K=8, N=5, bits=4, block_size=32,
        ),
        onnx.helper.make_node("Cast", ["shift"], ["narrow"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Add", ["z", "narrow"], ["y"]),
    ]  # fmt: skip
    opsets = (("", 17), ("com.microsoft", 1))
    model = matmul_model(nodes, [packed, scales, small], opsets)
    assert set(names_in(picture_of(model).data)) == {"head.packed", "shift"}
