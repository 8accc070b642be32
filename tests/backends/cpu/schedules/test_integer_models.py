"""Quantized models of ONNX are computed by dot products of small integers, exactly."""

import re

import numpy as np
import pytest

import weft
from tests.lib.onnx_models import info, model, node
from weft.relax.frontend.onnx import from_onnx
from weft.target.host import host_features
from weft.target.machine import machine_of

pytestmark = [
    pytest.mark.sampled(3),
    pytest.mark.onnx,
    pytest.mark.skipif(not host_features().get("avx2", False), reason="cannot run code for AVX2"),
]
HOST, HASWELL = "llvm -num-cores=2", "llvm -mcpu=haswell -num-cores=2"
RNG = np.random.default_rng(11)
X, Y, Z = np.float32(0.02), np.float32(0.37), 3
"""Scales of data and result, and their zero point."""


def numbers(shape, dtype):
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return RNG.integers(low, high, shape).astype(dtype)


def compiled(proto, target, *arrays):
    """What a model gives, and whether a product of it is computed by instructions for that."""
    made = weft.compile(from_onnx(proto), target=target)
    found = re.findall("vpdpbusd|vpdpwssd|vpmaddwd", made.get_source("asm"))
    assert set(found) & set(machine_of(target).dot_products)
    return made(*arrays)


def quantized(total, scales, dtype, bias=0):
    """Sums as QLinear* and QDQ models round them, in float32."""
    real = total.astype("float32") * scales + bias
    bounds = np.iinfo(dtype)
    return np.clip(np.rint(real) + Z, bounds.min, bounds.max).astype(dtype)


def convolved(x, w, pads, strides):
    """A convolution of integers, by numpy."""
    top, left, bottom, right = pads
    wide = np.pad(x.astype("int64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, w.shape[2:], (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1]]
    return np.einsum("nchwyx,ocyx->nohw", windows, w.astype("int64"), optimize=True)


@pytest.mark.parametrize(("dtype", "target"), [("uint8", HOST), ("int8", HOST), ("int8", HASWELL)])
def test_products(dtype, target):
    a, b = numbers((7, 33), dtype), numbers((33, 19), "int8")
    point = np.array(Z, dtype)
    total = (a.astype("int64") - Z) @ b.astype("int64")
    scales = RNG.uniform(0.01, 0.02, 19).astype("float32")
    constants = {"b": b, "z": point, "bz": np.zeros(19, "int8"), "s": X, "bs": scales, "ys": Y}
    nodes = [node("MatMulInteger", "a b z", "i"), node("QLinearMatMul", "a s z b bs bz ys z", "y")]
    proto = model(nodes, [info("a", dtype, ["m", 33])], ["i", "y"], constants=constants)
    sums, rounded = compiled(proto, target, a)
    np.testing.assert_array_equal(sums, total)
    np.testing.assert_array_equal(rounded, quantized(total, X * scales / Y, dtype))


@pytest.mark.parametrize(
    ("channels", "filters", "window", "pads", "strides", "dtype", "target"),
    [
        (16, 24, 1, (0, 0, 0, 0), (1, 1), "uint8", HOST),
        (3, 10, 3, (1, 1, 1, 1), (2, 2), "uint8", HOST),
        (18, 32, 3, (0, 1, 2, 0), (1, 2), "int8", HOST),
        (18, 20, 3, (0, 1, 2, 0), (1, 2), "int8", HASWELL),
    ],
)  # fmt: skip
def test_convolutions(channels, filters, window, pads, strides, dtype, target):
    x = numbers((1, channels, 9, 11), dtype)
    w = numbers((filters, channels, window, window), "int8")
    point, bias = np.array(Z, dtype), RNG.integers(-999, 999, filters).astype("int32")
    total = convolved(x.astype("int64") - Z, w, pads, strides)
    scales = RNG.uniform(0.01, 0.02, filters).astype("float32")
    attributes = {"pads": pads, "strides": strides}
    nodes = [node("ConvInteger", "x w z", "i", **attributes),
             node("QLinearConv", "x s z w ws wz ys z b", "y", **attributes)]  # fmt: skip
    constants = {"w": w, "z": point, "wz": np.zeros(filters, "int8"), "s": X, "ws": scales,
                 "ys": Y, "b": bias}  # fmt: skip
    proto = model(nodes, [info("x", dtype, x.shape)], ["i", "y"], constants=constants)
    sums, rounded = compiled(proto, target, x)
    np.testing.assert_array_equal(sums, total)
    wanted = quantized(total + bias[:, None, None], (X * scales / Y)[:, None, None], dtype)
    np.testing.assert_array_equal(rounded, wanted)


def dequantize(name, axis=None):
    options = {} if axis is None else {"axis": axis}
    return node("DequantizeLinear", f"{name} {name}_scale {name}_zero", f"{name}_real", **options)


def test_dequantized_layers():
    """A convolution and a dense layer as quantizers of PyTorch and ONNX Runtime write them."""
    x, w, v = numbers((2, 6, 5, 5), "uint8"), numbers((20, 6, 3, 3), "int8"), numbers(
        (9, 20), "int8"
    )  # fmt: skip
    ws, vs = [RNG.uniform(0.01, 0.02, size).astype("float32") for size in (20, 9)]
    constants = {
        "x_scale": X, "x_zero": np.array(Z, "uint8"), "w": w, "w_scale": ws,
        "w_zero": np.zeros(20, "int8"), "v": v, "v_scale": vs, "v_zero": np.zeros(9, "int8"),
        "q_scale": Y, "q_zero": np.array(Z, "uint8"), "flat": np.array([2, 20]),
    }  # fmt: skip
    nodes = [
        dequantize("x"), dequantize("w", 0), node("Conv", "x_real w_real", "c", strides=[2, 2]),
        node("Relu", "c", "r"), node("GlobalMaxPool", "r", "g"), node("Reshape", "g flat", "f"),
        node("QuantizeLinear", "f q_scale q_zero", "q"), dequantize("q"), dequantize("v", 0),
        node("Gemm", "q_real v_real", "d", transB=1),
        node("QuantizeLinear", "d q_scale q_zero", "y"),
    ]  # fmt: skip
    proto = model(nodes, [info("x", "uint8", x.shape)], ["y"], constants=constants)
    total = convolved(x.astype("int64") - Z, w, (0, 0, 0, 0), (2, 2)).astype("float32")
    image = np.maximum(total * (X * ws)[:, None, None], 0).max((2, 3))
    q = quantized(image / Y, 1, "uint8")
    dense = (q.astype("int64") - Z) @ v.T.astype("int64")
    wanted = quantized(dense.astype("float32") * (Y * vs) / Y, 1, "uint8")
    np.testing.assert_array_equal(compiled(proto, HOST, x), wanted)


def test_a_product_of_what_is_quantized_at_every_call():
    a, b = RNG.standard_normal((7, 33)).astype("float32"), numbers((33, 19), "int8")
    nodes = [node("DynamicQuantizeLinear", "a", "q s z"), node("MatMulInteger", "q b z", "i"),
             node("Cast", "i", "f", to=1), node("Mul", "f s", "y")]  # fmt: skip
    proto = model(nodes, [info("a", shape=[7, 33])], ["i", "y"], constants={"b": b})
    total, y = compiled(proto, HOST, a)
    scale = (max(a.max(), 0) - min(a.min(), 0)) / 255
    point = np.clip(np.rint(-min(a.min(), 0) / scale), 0, 255)
    q = np.clip(np.rint(a / scale) + point, 0, 255)
    np.testing.assert_array_equal(total, (q - point).astype("int64") @ b.astype("int64"))
    np.testing.assert_allclose(y, total * scale, rtol=1e-6)
