"""Valid ONNX models to damage: of every group of operators, with graphs and functions inside."""

from __future__ import annotations

import functools
import warnings

import numpy as np

from tests.lib.onnx_models import info, model, node
from weft.relax.frontend.onnx.errors import need_onnx
from weft.relax.frontend.onnx.registry import converter_names

onnx = need_onnx()
helper = onnx.helper
LARGEST = 20_000
"""Bytes of a model: what is larger is large by its weights."""

SINGLE = (
    ("Relu", {}, [[2, 3]], {}),
    ("Add", {}, [[2, 3], [3]], {}),
    ("Softmax", {"axis": 1}, [[2, 3]], {}),
    ("MatMul", {}, [[2, 3], [3, 4]], {}),
    ("Transpose", {"perm": [1, 0, 2]}, [[2, 3, 4]], {}),
    ("Gemm", {"transB": 1, "alpha": 0.5}, [[2, 3], [4, 3], [4]], {}),
    ("Conv", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]},
     [[1, 4, 6, 6], [4, 4, 3, 3], [4]], {}),
    ("ConvTranspose", {"strides": [2, 2], "group": 2}, [[1, 4, 3, 3], [4, 2, 2, 2]], {}),
    ("MaxPool", {"kernel_shape": [2, 2], "ceil_mode": 1}, [[1, 2, 5, 5]], {}),
    ("AveragePool", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, [[1, 2, 5, 5]], {}),
    ("BatchNormalization", {"epsilon": 1e-3}, [[1, 2, 3, 3], [2], [2], [2], [2]], {}),
    ("LayerNormalization", {"axis": -1}, [[2, 3], [3], [3]], {}),
    ("ReduceSum", {"keepdims": 0}, [[2, 3, 4]], {"axes": [1]}),
    ("ArgMax", {"axis": 1}, [[2, 3]], {}),
    ("Reshape", {}, [[2, 6]], {"shape": [3, -1]}),
    ("Expand", {}, [[1, 3]], {"shape": [2, 3]}),
    ("Slice", {}, [[5, 6]], {"starts": [1, 0], "ends": [4, -1], "axes": [0, 1], "steps": [2, 1]}),
    ("Pad", {"mode": "reflect"}, [[3, 4]], {"pads": [1, 0, 0, 2]}),
    ("Tile", {}, [[2, 3]], {"r": [2, 1]}),
    ("Gather", {"axis": 1}, [[3, 4]], {"indices": [[0, -1], [2, 1]]}),
    ("ScatterND", {}, [[4, 2]], {"indices": [[1], [3]], "updates": [[1.0, 2.0], [3.0, 4.0]]}),
    ("Resize", {"mode": "linear"}, [[1, 1, 3, 3]], {"roi": [], "scales": [1.0, 1.0, 2.0, 1.5]}),
    ("TopK", {"largest": 1}, [[2, 5]], {"k": [3]}),
    ("OneHot", {}, [[3]], {"d": 4, "v": [0, 1]}),
    ("CumSum", {"exclusive": 1}, [[2, 3]], {"axis": 1}),
    ("Unsqueeze", {}, [[2]], {"axes": [0, 2]}),
    ("Split", {"axis": 1, "num_outputs": 2}, [[2, 5]], {}),
    ("Concat", {"axis": 0}, [[1, 2], [3, 2]], {}),
    ("Einsum", {"equation": "bij,bjk->bik"}, [[2, 3, 4], [2, 4, 5]], {}),
    ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, [[1, 8, 2, 3]], {}),
    ("LSTM", {"hidden_size": 3, "direction": "bidirectional"},
     [[4, 1, 2], [2, 12, 2], [2, 12, 3]], {}),
    ("GRU", {"hidden_size": 3, "linear_before_reset": 1}, [[4, 1, 2], [1, 9, 2], [1, 9, 3]], {}),
    ("QuantizeLinear", {"axis": 0}, [[2, 3]], {"s": [0.5, 0.1]}),
    ("Cast", {"to": 10}, [[2, 3]], {}),
    ("ConstantOfShape", {"value": onnx.numpy_helper.from_array(np.array([3], "int32"))}, [],
     {"shape": [2, 3]}),
    ("GridSample", {"mode": "cubic"}, [[1, 1, 3, 3], [1, 2, 2, 2]], {}),
    ("Clip", {}, [[3]], {"low": -1.0}),
    ("Range", {}, [], {"start": 1, "limit": 9, "delta": 3}),
    ("NonZero", {}, [[2, 3]], {}),
    ("Attention", {"q_num_heads": 2, "kv_num_heads": 2}, [[1, 4, 8], [1, 4, 8], [1, 4, 8]], {}),
    ("STFT", {}, [[1, 16, 1]], {"step": 4, "window": np.ones(8, "float32")}),
    ("Size", {}, [[2, 3]], {}),
)  # fmt: skip
"""``(operator, attributes, shapes of the inputs, constants)``."""


def _constant(value):
    array = np.asarray(value)
    return array.astype("float32") if array.dtype == np.float64 else array


def _single(r):
    name, attributes, shapes, constants = r.choice(SINGLE)
    inputs = [info(f"x{i}", shape=_shape(r, shape)) for i, shape in enumerate(shapes)]
    names = [f"x{i}" for i in range(len(shapes))] + list(constants)
    outputs = "y0 y1" if name in ("TopK", "Split", "LSTM", "GRU") else "y0"
    nodes = [node(name, " ".join(names), outputs, **attributes)]
    arrays = {key: _constant(value) for key, value in constants.items()}
    opset = 23 if name == "Attention" else 18
    return model(nodes, inputs, outputs.split(), opset, constants=arrays)


def _shape(r, shape):
    """The shape, now and then with a name in the place of its first extent."""
    return ["n", *shape[1:]] if shape and r.random() < 0.2 else shape


def _branches(r):
    def branch(name):
        return helper.make_graph([node(name, "x", "z")], name, [], [info("z")])

    choose = node("If", "c", "y", then_branch=branch("Relu"), else_branch=branch("Neg"))
    inputs = [info("c", "bool", []), info("x", shape=[2, 3])]
    return model([choose], inputs, ["y"])


def _loop(r):
    body = helper.make_graph(
        [node("Add", "s s", "t"), node("Identity", "c", "d"), node("Identity", "t", "o")], "body",
        [info("i", "int64", []), info("c", "bool", []), info("s", shape=[2])],
        [info("d", "bool", []), info("t", shape=[2]), info("o", shape=[2])],
    )  # fmt: skip
    nodes = [node("Loop", "m k x", "y o", body=body)]
    constants = {"m": np.array(3), "k": np.array(True)}
    return model(nodes, [info("x", shape=[2])], ["y", "o"], constants=constants)


def _scan(r):
    body = helper.make_graph(
        [node("Add", "s x", "t"), node("Relu", "t", "o")], "body",
        [info("s", shape=[2]), info("x", shape=[2])], [info("t", shape=[2]), info("o", shape=[2])],
    )  # fmt: skip
    nodes = [node("Scan", "s0 xs", "s o", body=body, num_scan_inputs=1)]
    return model(nodes, [info("s0", shape=[2]), info("xs", shape=[3, 2])], ["s", "o"])


def _function(r):
    domain, opset = "local", helper.make_opsetid("", 18)
    inner = helper.make_node("LeakyRelu", ["a"], ["b"])
    inner.attribute.append(onnx.AttributeProto(name="alpha", type=1, ref_attr_name="slope"))
    body = helper.make_function(domain, "Leaky", ["a"], ["b"], [inner], [opset], ["slope"])
    call = helper.make_node("Leaky", ["x"], ["y"], domain=domain, slope=0.3)
    imports = [opset, helper.make_opsetid(domain, 1)]
    return model([call], [info("x", shape=[2])], ["y"], functions=[body], imports=imports)


def _network(r):
    """Layers in a row, weights among the initializers."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((3, 1, 3, 3)).astype("float32"), "b": np.zeros(3, "float32"),
        "shape": np.array([0, -1]), "v": rng.standard_normal((4, 48)).astype("float32"),
    }  # fmt: skip
    nodes = [
        node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", "p shape", "f"), node("Gemm", "f v", "g", transB=1),
        node("Softmax", "g", "y", axis=-1),
    ]  # fmt: skip
    return model(nodes, [info("x", shape=["n", 1, 8, 8])], ["y"], constants=weights)


def _sequence(r):
    nodes = [
        node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "a"),
        node("ConcatFromSequence", "s", "y", axis=0), node("Identity", "a", "z"),
    ]  # fmt: skip
    return model(nodes, [info("x", shape=[2])], ["y", "z"], constants={"i": np.array(1)})


GROUPS = (*[_single] * 4, _branches, _loop, _scan, _function, _network, _sequence)


def random_onnx(r):
    """A model; every one of them is imported by weft."""
    return r.choice(GROUPS)(r)


@functools.cache
def suite_models():
    """The models of ONNX's own tests of operators that have a converter; seconds to collect."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes what it expects, infinities too
        names = sorted({name.rpartition("::")[2] for name in converter_names()})
        found = [case.model for name in names for case in collect_testcases(name)]
    return [proto for proto in found if proto is not None and proto.ByteSize() < LARGEST]


def random_suite_model(r):
    """A model of ONNX's own tests."""
    return r.choice(suite_models())
