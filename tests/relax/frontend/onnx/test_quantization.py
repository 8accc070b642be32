"""Quantized tensors against ONNX's reference and numpy."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.lib.onnx_models import check, check_node, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.operators.microsoft_weights import unpacked

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_to_integers_and_back(dtype):
    zero = np.array(3, dtype)
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    proto = model(nodes, [info("x", shape=["n", 3])], ["q", "y"],
                  constants={"s": np.array(0.37, "float32"), "z": zero})  # fmt: skip
    x = np.array([[0.185, 0.555, -0.185], [1e5, -1e5, 4.0]], "float32")  # ties, and out of range
    check(proto, x)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_nan_is_the_least_integer_and_infinities_are_the_ends(dtype, kind):
    """A causal mask of -inf that calibration saw gives such scales: inf / inf is NaN."""
    limits = np.iinfo(dtype)
    for scale in (0.5, np.inf):
        proto = model([node("QuantizeLinear", "x s z", "y")], [info("x", kind, [4])], ["y"],
                      constants={"s": np.array(scale, kind), "z": np.array(3, dtype)})  # fmt: skip
        x = np.array([np.nan, np.inf, -np.inf, 0.25], kind)
        wanted = [limits.min, limits.max, limits.min, 3]
        if scale == np.inf:
            wanted = [limits.min] * 3 + [3]
        assert run(from_onnx(proto), x).tolist() == wanted


@pytest.mark.parametrize(("block", "shape"), [(0, (3,)), (2, (4, 2, 2))])
def test_scales_of_an_axis_and_of_blocks(block, shape):
    scale = uniform(*shape, low=0.1, high=0.5)
    zeros = uniform(*shape, seed=1, low=0, high=9).astype("uint8")
    x = uniform(4, 3, 2)
    nodes = [node("QuantizeLinear", "x s z", "q", axis=1, block_size=block),
             node("DequantizeLinear", "q s z", "y", axis=1, block_size=block)]  # fmt: skip
    proto = model(nodes, [info("x", shape=["n", 3, "w"])], ["q", "y"],
                  constants={"s": scale, "z": zeros})  # fmt: skip
    check(proto, x)


@pytest.mark.parametrize("elem", [TensorProto.INT4, TensorProto.UINT2, TensorProto.FLOAT8E4M3FN])
def test_small_types(elem):
    nodes = [node("QuantizeLinear", "x s", "q", output_dtype=elem),
             node("DequantizeLinear", "q s", "y")]  # fmt: skip
    proto = model(nodes, [info("x", shape=[5])], ["y"], opset=25,
                  constants={"s": np.array(0.5, "float32")})  # fmt: skip
    check(proto, np.array([-9, -0.6, 0.25, 0.75, 30], "float32"))


def test_products_of_integers():
    a = np.arange(6, dtype="uint8").reshape(2, 3)
    b = np.arange(12, dtype="int8").reshape(3, 4) - 6
    check_node("MatMulInteger", [a, b], constants={"z": np.array(3, "uint8")}, symbolic=True)
    rows, columns = np.array([3, 7], "uint8"), np.array([-1, 0, 5, 2], "int8")
    proto = model([node("MatMulInteger", "a b r c", "y")], [info("a", "uint8", ["m", 3])], ["y"],
                  constants={"b": b, "r": rows, "c": columns})  # fmt: skip
    wanted = (a.astype(int) - rows[:, None]) @ (b.astype(int) - columns)
    assert np.array_equal(run(from_onnx(proto), a), wanted)
    x = np.arange(32, dtype="uint8").reshape(1, 2, 4, 4)
    w = np.arange(36, dtype="uint8").reshape(2, 2, 3, 3)
    made = model([node("ConvInteger", "x w z", "y", pads=[1, 1, 1, 1])],
                 [info("x", "uint8", ["n", 2, 4, 4])], ["y"],
                 constants={"w": w, "z": np.array(5, "uint8")})  # fmt: skip
    check(made, x)


def test_quantized_convolution_with_a_scale_for_each_channel():
    x, w = np.arange(32, dtype="uint8").reshape(1, 2, 4, 4), np.arange(36) - 18
    w = w.astype("int8").reshape(2, 2, 3, 3)
    scales = np.array([0.02, 0.05], "float32")
    constants = {
        "xs": np.array(0.1, "float32"), "xz": np.array(7, "uint8"), "w": w, "ws": scales,
        "wz": np.zeros(2, "int8"), "ys": np.array(0.3, "float32"), "yz": np.array(11, "uint8"),
        "b": np.array([40, -60], "int32"),
    }  # fmt: skip
    proto = model([node("QLinearConv", "x xs xz w ws wz ys yz b", "y")],
                  [info("x", "uint8", [1, 2, 4, 4])], ["y"], constants=constants)  # fmt: skip
    exact = np.zeros((1, 2, 2, 2))
    for i in range(2):
        for j in range(2):
            part = x[0, :, i : i + 3, j : j + 3].astype(int) - 7
            exact[0, :, i, j] = (part * w.astype(int)).sum((1, 2, 3)) + constants["b"]
    real = exact * 0.1 * scales[:, None, None] / 0.3
    np.testing.assert_array_equal(
        run(from_onnx(proto), x), np.clip(np.round(real) + 11, 0, 255).astype("uint8")
    )


@pytest.mark.slow
def test_fused_quantized_operators():
    a, b = uniform(2, 3), uniform(3, 2, seed=1)
    scale, zero = np.array(0.05, "float32"), np.array(128, "uint8")
    q = np.clip(np.round(a / scale) + 128, 0, 255).astype("uint8")
    weight = np.clip(np.round(b / 0.02), -128, 127).astype("int8")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    nodes = [
        node("QLinearAdd", "q s z q s z s z", "sum", domain="com.microsoft"),
        node("DynamicQuantizeMatMul", "a w ws", "dyn", domain="com.microsoft"),
    ]
    proto = model(nodes, [info("q", "uint8", [2, 3]), info("a", shape=["n", 3])], ["sum", "dyn"],
                  constants={"s": scale, "z": zero, "w": weight,
                             "ws": np.array(0.02, "float32")}, imports=imports)  # fmt: skip
    total, product = run(from_onnx(proto), q, a)
    assert np.array_equal(total, np.clip(2 * (q.astype(int) - 128) + 128, 0, 255))
    np.testing.assert_allclose(product, a @ b, atol=0.05)


def test_weights_of_four_bits_are_unpacked():
    weight = np.arange(64).reshape(2, 32) % 16
    packed = (weight[:, ::2] | weight[:, 1::2] << 4).astype("uint8").reshape(2, 1, 16)
    scales = np.array([0.5, 0.25], "float32")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made = node("MatMulNBits", "a b s", "y", domain="com.microsoft", K=32, N=2, bits=4,
                block_size=32)  # fmt: skip
    proto = model([made], [info("a", shape=["n", 32])], ["y"],
                  constants={"b": packed, "s": scales}, imports=imports)  # fmt: skip
    a = uniform(3, 32)
    np.testing.assert_allclose(
        run(from_onnx(proto), a), a @ ((weight - 8) * scales[:, None]).T, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("bits", "depth", "size", "zeros", "stays"),
    [(4, 64, 32, None, True), (4, 64, 16, "uint8", True), (2, 64, 16, None, True),
     (8, 64, 32, None, True), (8, 64, 32, "uint8", False), (4, 72, 16, None, False),
     (4, 64, 32, "float32", False)],
)  # fmt: skip
def test_packed_weights_stay_bytes_where_int8_holds_them(bits, depth, size, zeros, stays):
    """Zero points of bytes may lie far away, those of floats between numbers, and the last block
    of a row may be short: then the matrix is made of floats at import."""
    rng, columns, blocks = np.random.default_rng(bits), 6, -(-depth // size)
    packed = rng.integers(0, 256, (columns, blocks, size * bits // 8), "uint8")
    scales = rng.uniform(0.5, 1, (columns, blocks)).astype("float32")
    constants, points = {"b": packed, "s": scales.reshape(-1)}, np.full((columns, blocks), 1.0)
    points = points * (1 << (bits - 1))
    if zeros == "float32":
        points = rng.uniform(0, 3, (columns, blocks)).astype("float32")
        constants["z"] = points
    elif zeros is not None:
        constants["z"] = rng.integers(0, 256, (columns, -(-blocks * bits // 8)), "uint8")
        points = unpacked(constants["z"], bits)[:, :blocks]
    made = node("MatMulNBits", "a b s z" if zeros else "a b s", "y", domain="com.microsoft",
                K=depth, N=columns, bits=bits, block_size=size)  # fmt: skip
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    proto = model([made], [info("a", shape=["n", depth])], ["y"], constants=constants,
                  imports=imports)  # fmt: skip
    module = from_onnx(proto)
    assert ("block_scaled_matmul" in module.script()) == stays
    numbers = unpacked(packed, bits).reshape(columns, blocks, size).astype("float64")
    matrix = ((numbers - points[..., None]) * scales[..., None]).reshape(columns, -1)[:, :depth]
    a = uniform(3, depth)
    np.testing.assert_allclose(run(module, a), a @ matrix.T, rtol=1e-4)


def test_softmax_of_quantized_numbers_is_that_of_its_own_opset():
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    q = np.array([[10, 20, 30], [0, 5, 90]], "uint8")
    constants = {"s": np.array(0.1, "float32"), "z": np.array(0, "uint8"),
                 "t": np.array(1 / 256, "float32")}  # fmt: skip
    call = node("QLinearSoftmax", "q s z t z", "y", domain="com.microsoft", axis=-1, opset=13)
    proto = model([call], [info("q", "uint8", [2, 3])], ["y"], constants=constants,
                  imports=imports)  # fmt: skip
    weights = np.exp(q * 0.1 - (q * 0.1).max(1, keepdims=True))
    wanted = np.clip(np.round(weights / weights.sum(1, keepdims=True) * 256), 0, 255)
    np.testing.assert_array_equal(run(from_onnx(proto), q), wanted)
