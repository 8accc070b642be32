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
