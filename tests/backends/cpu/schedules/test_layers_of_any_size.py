"""No layer of a network runs as plain loops, whatever sizes are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.left_as_written import left_as_written
from weft import relax, tir
from weft.backends.cpu.pipeline import GRAPH
from weft.ir.transform import Sequential
from weft.relax import op
from weft.target.target import Target

pytestmark = pytest.mark.sampled(3)

TARGET = Target("llvm -mcpu=cascadelake -num-cores=2")
RNG = np.random.default_rng(0)
SIZES = {
    "fixed": (8, 24, 25),
    "one image": (1, 48, 49),
    "any batch": ("n", 24, 25),
    "any image": (1, "h", "w"),
    "any size": ("n", "h", "w"),
}


def weights(*shape):
    return relax.const(RNG.standard_normal(shape).astype("float32"))


class Layers:
    """A function of an image, written layer by layer."""

    def __init__(self, channels, sizes):
        symbols = {name: tir.SizeVar(name, "int64") for name in "nhw"}
        n, h, w = [symbols.get(size, size) for size in sizes]
        self.image = relax.Var("x", relax.TensorStructInfo((n, channels, h, w), "float32"))
        self.builder = relax.BlockBuilder()

    def __getattr__(self, name):
        function = getattr(op.nn, name, None) or getattr(op, name)
        return lambda *args, **attrs: self.builder.emit(function(*args, **attrs))

    def conv(self, x, channels, size=3, **attrs):
        before = int(x.struct_info.shape[1]) // attrs.get("groups", 1)
        return self.conv2d(x, weights(channels, before, size, size), **attrs)

    def rectified(self, x):
        """A PReLU, as ONNX files write it."""
        slope = weights(1, int(x.struct_info.shape[1]), 1, 1)
        zero = relax.const(0.0, "float32")
        return self.where(self.less(x, zero), self.multiply(x, slope), x)


def pooled(channels, kind, **attrs):
    """Between two convolutions: its image is in blocks of channels."""

    def body(layers, x):
        y = layers.relu(layers.conv(x, channels))
        y = getattr(layers, f"{kind}_pool2d")(y, (3, 3), (2, 2), **attrs)
        return layers.conv(y, 48)

    return body


def narrow(layers, x):
    """The first layers of P-Net, whose channels are in no blocks."""
    y = layers.rectified(layers.conv(x, 10))
    y = layers.max_pool2d(y, (2, 2), (2, 2), ceil_mode=True)
    y = layers.rectified(layers.conv(y, 16))
    y = layers.conv(layers.rectified(layers.conv(y, 32)), 4, 1)
    return layers.permute_dims(y, [0, 2, 3, 1])


def separable(layers, x):
    y = layers.relu6(layers.conv(x, 32, strides=(2, 2), padding=(1, 1)))
    y = layers.relu6(layers.conv(y, 32, padding=(1, 1), groups=32))
    return layers.add(layers.conv(y, 32, 1), y)


def attended(layers, x):
    """Channels weighted by what pools and a product say."""
    y = layers.silu(layers.conv(x, 24))
    mean = layers.mean(y, [2, 3], keepdims=True)
    return layers.multiply(
        y, layers.sigmoid(layers.conv(layers.relu(layers.conv(mean, 8, 1)), 24, 1))
    )


def tokens(layers, x):
    """A transformer's products, norm and softmax over the pixels."""
    n, c, h, w = x.struct_info.shape
    y = layers.permute_dims(layers.reshape(x, (n, c, h * w)), [0, 2, 1])
    y = layers.layer_norm(layers.matmul(y, weights(int(c), 56)), weights(56), weights(56), [-1])
    scores = layers.softmax(layers.matmul(y, layers.permute_dims(y, [0, 2, 1])), -1)
    return layers.power(layers.matmul(scores, layers.gelu(y)), relax.const(2.0, "float32"))


def enlarged(layers, x):
    kernels = weights(int(x.struct_info.shape[1]), 20, 2, 2)
    return layers.tanh(layers.conv2d_transpose(x, kernels, strides=(2, 2)))


NETWORKS = {
    "largest of one block of channels": (3, pooled(16, "max")),
    "largest of a block and a half": (3, pooled(28, "max", ceil_mode=True)),
    "largest of many, padded": (3, pooled(64, "max", padding=(1, 1))),
    "means": (3, pooled(16, "avg", padding=(1, 1))),
    "narrow": (3, narrow),
    "separable": (3, separable),
    "attended": (3, attended),
    "tokens": (32, tokens),
    "enlarged": (16, enlarged),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("network", NETWORKS)
def test_no_block_stays_as_written(network, sizes):
    channels, body = NETWORKS[network]
    layers = Layers(channels, SIZES[sizes])
    with layers.builder.function("main", [layers.image]):
        with layers.builder.dataflow():
            result = layers.builder.emit_output(body(layers, layers.image))
        layers.builder.emit_func_output(result)
    with TARGET:
        module = Sequential(GRAPH)(layers.builder.get())
    assert left_as_written(module) == []


def test_a_block_in_plain_loops_is_seen():
    layers = Layers(3, SIZES["fixed"])
    with layers.builder.function("main", [layers.image]):
        layers.builder.emit_func_output(layers.conv(layers.image, 8))
    module = relax.transform.LegalizeOps()(layers.builder.get())
    assert left_as_written(module) == ["conv2d: pad_temp", "conv2d: conv2d_nchw"]
