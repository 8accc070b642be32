"""Operators of com.microsoft beside ONNX Runtime, whose own they are.

The other tests of this folder compute the same with numpy, and need no ONNX Runtime.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.lib.onnx_models import check_microsoft, info, model, node, run, uniform
from weft.ir.functor import collect
from weft.relax.expr import Constant
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

onnxruntime = pytest.importorskip("onnxruntime", reason="its results are what is compared with")
pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]

IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
X = uniform(2, 3, 8)
ROWS = uniform(8, seed=1)
WIDE = uniform(8, 24, seed=2)
QUERY = uniform(2, 3, 8, seed=3)
PAST = uniform(2, 2, 2, 2, 4, seed=4)
IDS = np.array([[1, 0, 4], [2, 2, 3]], "int32")
BYTES = np.random.default_rng(5)
HALF = {name: uniform(8, 2, seed=seed) for name, seed in (("cos", 6), ("sin", 7))}
CAUSAL = {"num_heads": 2, "unidirectional": 1}
Q3, Q4 = BYTES.integers(0, 256, (2, 3, 8), "uint8"), BYTES.integers(0, 256, (1, 3, 4, 4), "uint8")
ZEROS = {name: np.array(value, "uint8") for name, value in (("b", 3), ("d", 200), ("z", 100))}
SCALES = {key: np.array(value, "float32") for key, value in (("a", 0.047), ("c", 0.21), ("s", 0.1))}
QUANTIZED = ZEROS | SCALES
"""The scales a, c and s with their zero points b, d and z."""
SHARES = QUANTIZED | {"s": np.array(1 / 256, "float32"), "z": np.array(0, "uint8")}
HEADS = QUANTIZED | {"w": BYTES.integers(0, 256, (8, 24), "uint8"), "e": np.tile(ROWS, 3)}
TABLES = {"w": (5, 8), "p": (6, 8), "t": (2, 8), "g": (8,), "h": (8,)}

CASES = {
    "Gelu": ("x", "y", {"x": X}, {}),
    "BiasGelu": ("x b", "y", {"x": X}, {"b": ROWS}),
    "FastGelu": ("x b", "y", {"x": X}, {"b": ROWS}),
    "QuickGelu": ("x", "y", {"x": X}, {}, {"alpha": 1.5}),
    "SkipLayerNormalization": (
        "x s g b c", "y - - z", {"x": X, "s": QUERY}, {"g": ROWS, "b": ROWS[::-1], "c": ROWS * 2},
        {"epsilon": 1e-6},
    ),
    "SkipSimplifiedLayerNormalization": (
        "x s g", "y - - z", {"x": X, "s": QUERY}, {"g": ROWS}, {"epsilon": 1e-6},
    ),
    "EmbedLayerNormalization": (
        "i s w p t g b", "y m", {"i": IDS, "s": IDS % 2},
        {"w": uniform(5, 8), "p": uniform(3, 8, seed=1), "t": uniform(2, 8, seed=2), "g": ROWS,
         "b": ROWS * 2}, {"epsilon": 1e-6},
    ),
    "Attention": ("x w b", "y", {"x": X}, {"w": WIDE, "b": np.tile(ROWS, 3)}, CAUSAL),
    "Attention with a past": (
        "x w b - past", "y present", {"x": X, "past": PAST},
        {"w": WIDE, "b": np.tile(ROWS, 3)}, CAUSAL,
    ),
    "MultiHeadAttention": (
        "q k v b", "y", {"q": QUERY, "k": X, "v": X * 2}, {"b": np.tile(ROWS, 3)},
        {"num_heads": 4, "scale": 0.3},
    ),
    "MultiHeadAttention of scale 0": (
        "q k v b", "y", {"q": QUERY, "k": X, "v": X * 2}, {"b": np.tile(ROWS, 3)},
        {"num_heads": 4, "scale": 0.0},
    ),
    "Attention of scale 0": (
        "x w b", "y", {"x": X}, {"w": WIDE, "b": np.tile(ROWS, 3)}, {**CAUSAL, "scale": 0.0},
    ),
    "GroupQueryAttention": (
        "q k v - - l t", "y k2 v2",
        {"q": uniform(2, 3, 32), "k": uniform(2, 3, 16, seed=1), "v": uniform(2, 3, 16, seed=2)},
        {"l": np.array([2, 2], "int32"), "t": np.array(3, "int32")},
        {"num_heads": 4, "kv_num_heads": 2},
    ),
    "RotaryEmbedding": (
        "x p c z", "y", {"x": X}, {"p": np.array([2], "int64"), "c": HALF["cos"], "z": HALF["sin"]},
        {"num_heads": 2},
    ),
    "FusedMatMul": ("x m", "y", {"x": X, "m": QUERY}, {}, {"transB": 1, "alpha": 0.5}),
    "FusedGemm": (
        "a m c", "y", {"a": X[0], "m": WIDE}, {"c": uniform(24)},
        {"activation": "LeakyRelu", "activation_alpha": 0.2, "beta": 2.0},
    ),
    "FusedConv": (
        "i k b", "y", {"i": uniform(1, 3, 6, 6)}, {"k": uniform(4, 3, 3, 3), "b": uniform(4)},
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
    ),
    "GatherND": ("x i", "y", {"x": X}, {"i": np.array([[0, 2], [1, -3]], "int64")}),
    "Trilu": ("x k", "y", {"x": X}, {"k": np.array(1, "int64")}, {"upper": 0}),
    "Pad": ("i p v", "y", {"i": X[0]}, {"p": np.array([1, 0, 0, 2]), "v": np.array([3], "float32")},
            {"mode": "constant"}),
    "Range": ("s l", "y", {"s": np.array(2, "float32"), "l": np.array(7.5, "float32")}, {}),
    "GridSample": (
        "i g", "y", {"i": uniform(2, 3, 5, 4), "g": uniform(2, 3, 6, 2, seed=1, high=1.2)}, {},
        {"mode": "bilinear", "padding_mode": "border", "align_corners": 1},
    ),
    "ExpandDims": ("x a", "y", {"x": X}, {"a": np.array(-2, "int32")}),
    "Unique": ("u", "y i c", {"u": np.array([3, 1, 3, 2, 1, 3], "float32")}, {}),
    "CDist": ("x m", "y", {"x": X[0], "m": uniform(5, 8, seed=7)}, {}, {"metric": "euclidean"}),
    "MatMulNBits": (
        "a q s", "y", {"a": uniform(2, 32)},
        {"q": BYTES.integers(0, 256, (5, 2, 8), "uint8"), "s": uniform(10, low=0.5)},
        {"K": 32, "N": 5, "bits": 4, "block_size": 16},
    ),
    "DynamicQuantizeMatMul": (
        "a q s z", "y", {"a": uniform(3, 8)},
        {"q": BYTES.integers(0, 256, (8, 4), "uint8"), "s": np.array([0.02], "float32"),
         "z": np.array([120], "uint8")},
    ),
    "MatMulIntegerToFloat": (
        "a q f s z u", "y", {"a": BYTES.integers(0, 256, (3, 8), "uint8")},
        {"q": BYTES.integers(0, 256, (8, 4), "uint8"), "f": np.array(0.1, "float32"),
         "s": np.array(0.2, "float32"), "z": np.array(3, "uint8"), "u": np.array(120, "uint8")},
    ),
    "Attention of keys from and to": (
        "x w b m", "y", {"x": X},
        {"w": WIDE, "b": np.tile(ROWS, 3), "m": np.array([2, 3, 0, 1], "int32")}, {"num_heads": 2},
    ),
    "QLinearConcat": ("s z x a b y c d", "o", {"x": Q3, "y": Q3[:, :2]}, QUANTIZED, {"axis": 1}),
    "QLinearAdd": ("x a b y c d s z", "o", {"x": Q3, "y": Q3[1].copy()}, QUANTIZED),
    "QLinearMul": ("x a b y c d s z", "o", {"x": Q3, "y": Q3[1]}, QUANTIZED),
    "QLinearWhere": (
        "i x a b y c d s z", "o", {"i": X[0] > 0, "x": Q3, "y": Q3[1]}, QUANTIZED,
    ),
    "QLinearSigmoid": ("x a b s z", "o", {"x": Q3}, SHARES),
    "QLinearLeakyRelu": ("x a b s z", "o", {"x": Q3}, QUANTIZED, {"alpha": 0.2}),
    "QLinearSoftmax": ("x a b s z", "o", {"x": Q3}, SHARES, {"axis": -1, "opset": 13}),
    "QLinearAveragePool": (
        "x a b s z", "o", {"x": Q4}, QUANTIZED, {"kernel_shape": [2, 2], "channels_last": 0},
    ),
    "QLinearGlobalAveragePool": ("x a b s z", "o", {"x": Q4}, QUANTIZED),
    "QLinearConv": (
        "x a b w c d s z", "o", {"x": Q4},
        QUANTIZED | {"w": BYTES.integers(0, 256, (2, 3, 3, 3), "uint8")},
    ),
    "QGemm": (
        "x a b w c d - s z", "o", {"x": Q3[0]}, HEADS | {"s": np.array(5.0, "float32")},
    ),
    "QGemm to numbers": (
        "x a b w c d e", "o", {"x": Q3[0]},
        QUANTIZED | {"w": BYTES.integers(0, 256, (4, 8), "uint8"),
                     "e": np.arange(-2, 2, dtype="int32")}, {"transB": 1},
    ),
    "QLinearAveragePool of channels last": (
        "x a b s z", "o", {"x": Q4}, QUANTIZED, {"kernel_shape": [2, 2], "channels_last": 1},
    ),
    "QLinearGlobalAveragePool of channels last": (
        "x a b s z", "o", {"x": Q4}, QUANTIZED, {"channels_last": 1},
    ),
    "QLinearConv of channels last": (
        "x a b w c d s z", "o", {"x": Q4},
        QUANTIZED | {"w": BYTES.integers(0, 256, (2, 4, 3, 3), "uint8")},
        {"channels_last": 1, "pads": [1, 1, 1, 1]},
    ),
    "NhwcMaxPool": ("x", "o", {"x": Q4}, {}, {"kernel_shape": [2, 2]}),
    "QEmbedLayerNormalization": (
        "i k w p t g h m a a c a c b d b d b", "o n",
        {"i": IDS, "k": IDS % 2, "m": np.array([[1, 1, 0], [1, 1, 1]], "int32")},
        QUANTIZED | {letter: BYTES.integers(0, 256, shape, "uint8")
                     for letter, shape in TABLES.items()},
    ),
    "QAttention": ("x w e a c", "o", {"x": Q3 // 32}, HEADS, CAUSAL),
    "QAttention of keys from and to": (
        "x w e a s m b d", "o", {"x": Q3}, HEADS | {"m": np.array([2, 3, 0, 1], "int32")},
        {"num_heads": 2},
    ),
    "QAttention with a past": (
        "x w e a s m b d past", "o p", {"x": Q3, "past": PAST},
        HEADS | {"m": np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 1]], "int32")}, CAUSAL,
    ),
    "QAttention with a scale a column": (
        "x w e a s - b d", "o", {"x": Q3},
        HEADS | {"w": BYTES.integers(-64, 64, (8, 24), "int8"), "d": np.zeros(24, "int8"),
                 "s": uniform(24, low=0.01, high=0.05)}, {"num_heads": 2},
    ),
}  # fmt: skip
"""Operator -> its inputs and outputs, values of inputs, constants, attributes."""


@pytest.mark.parametrize("name", CASES)
def test_com_microsoft(name):
    check_microsoft(name.split()[0], *CASES[name])


REFUSED = [
    (node("Unique", "x", "y i c", domain="com.microsoft"), "input x: expected 1 dimension, got 3"),
    (node("CDist", "x x", "y", domain="com.microsoft", metric="cosine"), "metric: expected euclid"),
    (node("ExpandDims", "x a", "y", domain="com.microsoft"), "axis 5 is outside of a tensor of 4"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[call.op_type for call, _ in REFUSED])
def test_what_com_microsoft_refuses(call, message):
    proto = model([call], [info("x", shape=X.shape)], ["y"], imports=IMPORTS,
                  constants={"a": np.array(5, "int32")} if "a" in call.input else {})  # fmt: skip
    with pytest.raises(OnnxNodeError, match=message):
        from_onnx(proto)


def quantized_lstm(directions, columns, shape, weights="w"):
    """DynamicQuantizeLSTM of 5 inputs and 3 states; scales are by direction, or by column.

    Of weights of 8 bits ONNX Runtime's sums of two products saturate where there is no VNNI.
    """
    made = node("DynamicQuantizeLSTM", f"x {weights} r b - - - - ws wz rs rz", "y h c",
                domain="com.microsoft", hidden_size=3,
                direction="bidirectional" if directions == 2 else "forward")  # fmt: skip
    scales = (directions, 12) if columns else (directions,)
    constants = {"b": uniform(directions, 24)}
    for letter, rows in (("w", 5), ("r", 3)):
        constants[letter] = BYTES.integers(-64, 64, (directions, rows, 12), "int8")
        constants[f"{letter}s"] = uniform(*scales, low=0.004, high=0.01)
        constants[f"{letter}z"] = np.zeros(scales, "int8")
    return model([made], [info("x", shape=shape)], ["y", "h", "c"], constants=constants,
                 imports=IMPORTS)  # fmt: skip


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_an_lstm_whose_data_is_quantized_when_it_runs(directions, columns):
    """Data and states are rounded; with more threads ONNX Runtime has a range for each one's."""
    proto = quantized_lstm(directions, columns, ["t", "n", 5])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    mod = from_onnx(proto)
    for steps, batch in ((1, 1), (7, 3)):
        x = uniform(steps, batch, 5, seed=steps)
        for got, want in zip(run(mod, x), session.run(None, {"x": x}), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6)


def test_an_lstm_whose_quantized_weights_are_known_has_numbers_for_them():
    """FoldConstant would leave large ones to each run (14 times the time of one step of 256)."""
    proto = quantized_lstm(2, True, ["t", "n", 5])
    lines = from_onnx(proto).script().splitlines()
    read = [line for line in lines if "astype(metadata" in line]
    assert [line for line in read if "float32" in line] == []


def with_offset_weights(proto, offset):
    """The model with its weights in uint8, of which ``offset`` is subtracted."""
    for tensor in proto.graph.initializer:
        numbers = numpy_helper.to_array(tensor)
        if numbers.dtype == np.int8:
            zero = np.full_like(numbers, offset, "uint8")
            moved = (
                zero
                if tensor.name.endswith("z")
                else (numbers.astype("int32") + offset).astype("uint8")
            )
            tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return proto


@pytest.mark.parametrize("columns", [False, True])
def test_an_lstm_reads_its_small_weights_in_every_step(columns):
    """As bytes: of floats a step would read four times as many."""
    proto = quantized_lstm(2, columns, [3, 2, 5])
    mod, x = from_onnx(proto), uniform(3, 2, 5)
    kinds = [str(item.data.dtype) for item in collect(mod["main"], Constant)]
    assert kinds.count("int8") == 1 + 2  # those of the state, and of the data by direction
    other = from_onnx(with_offset_weights(proto, 128))
    for got, want in zip(run(other, x), run(mod, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_weights_that_are_no_int8_without_their_zero_point_are_floats():
    proto = with_offset_weights(quantized_lstm(1, False, [3, 2, 5]), 128)
    for wrong in ("rz", "wz"):
        for tensor in proto.graph.initializer:
            if tensor.name == wrong:
                tensor.CopyFrom(numpy_helper.from_array(np.zeros(1, "uint8"), wrong))
        kinds = [str(item.data.dtype) for item in collect(from_onnx(proto)["main"], Constant)]
        assert kinds.count("int8") == (wrong == "rz")


def test_an_lstm_of_quantized_weights_that_the_run_knows():
    proto, x = quantized_lstm(2, True, [4, 2, 5]), uniform(4, 2, 5)
    wanted = run(from_onnx(proto), x)
    known = [item for item in proto.graph.initializer if item.name in ("w", "r", "wz")]
    given = {item.name: numpy_helper.to_array(item) for item in known}
    for item in known:
        proto.graph.initializer.remove(item)
        proto.graph.input.append(info(item.name, "int8", given[item.name].shape))
    for got, want in zip(run(from_onnx(proto), x, *given.values()), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_an_lstm_of_quantized_weights_takes_steps_batch_and_inputs():
    with pytest.raises(OnnxNodeError, match="its input X: expected 3 dimensions, got 2"):
        from_onnx(quantized_lstm(1, False, [7, 5]))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("position", ["half_pixel", "pytorch_half_pixel"])
def test_bytes_resized_with_antialias(mode, position):
    """To the last unit; of int8 and align_corners ONNX Runtime's answers are not ONNX's."""
    x = BYTES.integers(0, 256, (1, 2, 16, 20), "uint8")
    scales = [(0.37, 0.61), (1.7, 0.5), (0.5, 2.5), (0.2, 1.0), (2.0, 2.0)]
    nodes = [
        node("Resize", f"x - s{number}", f"y{number}{outside}", mode=mode, antialias=1,
             exclude_outside=outside, coordinate_transformation_mode=position)
        for number in range(len(scales)) for outside in (0, 1)
    ]  # fmt: skip
    proto = model(
        nodes, [info("x", "uint8", x.shape)], [one.output[0] for one in nodes], opset=18,
        constants={f"s{number}": np.array([1, 1, *pair], "float32")
                   for number, pair in enumerate(scales)},
    )  # fmt: skip
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for got, want in zip(run(from_onnx(proto), x), session.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, want)
