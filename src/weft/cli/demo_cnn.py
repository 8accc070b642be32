"""The network of the course's assignment, written in several of the course's ways.

Convolution 1 to 32 channels of 3 by 3, ReLU, 2 by 2 maximum, linear 5408-100, ReLU, linear 100-10,
softmax. Every function takes the trained parameters and returns an IRModule whose ``main``
classifies one batch, (BATCH, 1, 28, 28) float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from weft import relax, topi
from weft.cli.demo_mlp import (
    BATCH,
    Parameters,
    from_fx,
    map_linear,
    map_relu,
    register_library,
    scheduled,
)
from weft.ir import IRModule
from weft.runtime.ndarray import NDArray
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

Constants = dict[str, relax.Constant]


@I.ir_module
class Script:
    """Every loop by hand."""

    @T.prim_func
    def conv2d(
        X: T.Buffer((BATCH, 1, 28, 28), "float32"),
        W: T.Buffer((32, 1, 3, 3), "float32"),
        B: T.Buffer((32,), "float32"),
        Z: T.Buffer((BATCH, 32, 26, 26), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((BATCH, 32, 26, 26), "float32")
        for n, c, y, x, i, j in T.grid(BATCH, 32, 26, 26, 3, 3):
            with T.block("Y"):
                vn, vc, vy, vx, vi, vj = T.axis.remap("SSSSRR", [n, c, y, x, i, j])
                with T.init():
                    Y[vn, vc, vy, vx] = T.float32(0)
                Y[vn, vc, vy, vx] += X[vn, 0, vy + vi, vx + vj] * W[vc, 0, vi, vj]
        for n, c, y, x in T.grid(BATCH, 32, 26, 26):
            with T.block("Z"):
                vn, vc, vy, vx = T.axis.remap("SSSS", [n, c, y, x])
                Z[vn, vc, vy, vx] = T.max(Y[vn, vc, vy, vx] + B[vc], T.float32(0))

    @T.prim_func
    def pool_flat(
        X: T.Buffer((BATCH, 32, 26, 26), "float32"), Y: T.Buffer((BATCH, 5408), "float32")
    ):
        T.func_attr({"tir.noalias": True})
        for n, f, i, j in T.grid(BATCH, 5408, 2, 2):
            with T.block("Y"):
                vn, vf, vi, vj = T.axis.remap("SSRR", [n, f, i, j])
                with T.init():
                    Y[vn, vf] = T.min_value("float32")
                Y[vn, vf] = T.max(
                    Y[vn, vf], X[vn, vf // 169, vf % 169 // 13 * 2 + vi, vf % 13 * 2 + vj]
                )

    @T.prim_func
    def linear0(
        X: T.Buffer((BATCH, 5408), "float32"),
        W: T.Buffer((100, 5408), "float32"),
        B: T.Buffer((100,), "float32"),
        Z: T.Buffer((BATCH, 100), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((BATCH, 100), "float32")
        for i, j, k in T.grid(BATCH, 100, 5408):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += X[vi, vk] * W[vj, vk]
        for i, j in T.grid(BATCH, 100):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = T.max(Y[vi, vj] + B[vj], T.float32(0))

    @T.prim_func
    def linear1(
        X: T.Buffer((BATCH, 100), "float32"),
        W: T.Buffer((10, 100), "float32"),
        B: T.Buffer((10,), "float32"),
        Z: T.Buffer((BATCH, 10), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((BATCH, 10), "float32")
        for i, j, k in T.grid(BATCH, 10, 100):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += X[vi, vk] * W[vj, vk]
        for i, j in T.grid(BATCH, 10):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @T.prim_func
    def softmax(X: T.Buffer((BATCH, 10), "float32"), Y: T.Buffer((BATCH, 10), "float32")):
        T.func_attr({"tir.noalias": True})
        top = T.alloc_buffer((BATCH,), "float32")
        total = T.alloc_buffer((BATCH,), "float32")
        for i, j in T.grid(BATCH, 10):
            with T.block("top"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], X[vi, vj])
        for i, j in T.grid(BATCH, 10):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + T.exp(X[vi, vj] - top[vi])
        for i, j in T.grid(BATCH, 10):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.exp(X[vi, vj] - top[vi]) / total[vi]

    @R.function
    def main(
        x: R.Tensor((BATCH, 1, 28, 28), "float32"),
        conv2d_weight: R.Tensor((32, 1, 3, 3), "float32"),
        conv2d_bias: R.Tensor((32,), "float32"),
        linear0_weight: R.Tensor((100, 5408), "float32"),
        linear0_bias: R.Tensor((100,), "float32"),
        linear1_weight: R.Tensor((10, 100), "float32"),
        linear1_bias: R.Tensor((10,), "float32"),
    ):
        cls = Script
        with R.dataflow():
            conv = R.call_tir(
                cls.conv2d,
                (x, conv2d_weight, conv2d_bias),
                R.Tensor((BATCH, 32, 26, 26), "float32"),
            )
            flat = R.call_tir(cls.pool_flat, (conv,), R.Tensor((BATCH, 5408), "float32"))
            hidden = R.call_tir(
                cls.linear0,
                (flat, linear0_weight, linear0_bias),
                R.Tensor((BATCH, 100), "float32"),
            )
            scores = R.call_tir(
                cls.linear1,
                (hidden, linear1_weight, linear1_bias),
                R.Tensor((BATCH, 10), "float32"),
            )
            out = R.call_tir(cls.softmax, (scores,), R.Tensor((BATCH, 10), "float32"))
            R.output(out)
        return out


def script_explicit(parameters: Parameters) -> IRModule:
    """TVMScript, the parameters as arguments."""
    return Script


def script_bound(parameters: Parameters) -> IRModule:
    """TVMScript with the parameters bound as constants."""
    arrays = {name: weft.nd.array(value) for name, value in parameters.items()}
    return relax.transform.BindParams("main", arrays)(Script)


def tensor_expressions(parameters: Parameters) -> IRModule:
    """Topi's tensor expressions, put together by a BlockBuilder."""
    p, x, builder = start(parameters)
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = emit_convolution(builder, x, p)
            out = builder.emit_output(emit_head(builder, conv, p))
        builder.emit_func_output(out)
    return builder.get()


def operators(parameters: Parameters) -> IRModule:
    """High-level operators, lowered to TensorIR."""
    passes = [relax.transform.LegalizeOps(), relax.transform.FuseTIR()]
    return weft.ir.transform.Sequential(passes)(graph(parameters))


def scheduled_operators(parameters: Parameters) -> IRModule:
    """The same operators, as ``weft.compile`` compiles them."""
    return scheduled(graph(parameters))


def graph(parameters: Parameters) -> IRModule:
    """High-level operators, nothing done to them."""
    p, x, builder = start(parameters)
    op = relax.op
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = builder.emit(op.nn.conv2d(x, p["conv2d_weight"]))
            rectified = builder.emit(op.nn.relu(builder.emit(op.add(conv, p["conv2d_bias"]))))
            pooled = builder.emit(op.nn.max_pool2d(rectified, pool_size=(2, 2), strides=(2, 2)))
            value = builder.emit(op.reshape(pooled, (BATCH, 5408)))
            for name in ("linear0", "linear1"):
                value = builder.emit(op.nn.dense(value, p[f"{name}_weight"]))
                value = builder.emit(op.add(value, p[f"{name}_bias"]))
                if name == "linear0":
                    value = builder.emit(op.nn.relu(value))
            out = builder.emit_output(op.nn.softmax(value))
        builder.emit_func_output(out)
    return builder.get()


def library_bound(parameters: Parameters) -> IRModule:
    """The convolution and the linear layers by library functions, the rest by topi."""
    register_library()
    register_convolution()
    p, x, builder = start(parameters)
    with builder.function("main", [x]):
        with builder.dataflow():
            arguments = relax.Tuple([x, p["conv2d_weight"], p["conv2d_bias"]])
            conv = builder.emit(
                relax.op.call_dps_packed(
                    "demo.conv2d",
                    arguments,
                    relax.TensorStructInfo((BATCH, 32, 26, 26), "float32"),
                )
            )
            out = builder.emit_output(emit_head(builder, conv, p, library=True))
        builder.emit_func_output(out)
    return builder.get()


def from_torch(parameters: Parameters) -> IRModule:
    """A PyTorch module traced by torch.fx, each node translated by an own map."""
    from torch import fx  # noqa: PLC0415 - optional

    module_map = {
        "Conv2d": map_convolution,
        "Linear": map_linear,
        "ReLU": map_relu,
        "MaxPool2d": lambda builder, x, layer: emit_pool(builder, x),
        "Flatten": lambda builder, x, layer: builder.emit_te(topi.nn.flatten, x),
        "Softmax": lambda builder, x, layer: builder.emit_te(topi.nn.softmax, x),
    }
    return from_fx(fx.symbolic_trace(torch_model(parameters)), (BATCH, 1, 28, 28), module_map)


def map_convolution(builder: relax.BlockBuilder, x: relax.Expr, layer: Any) -> relax.Var:
    """A torch Conv2d without padding as topi's conv2d and add."""
    weight = relax.const(layer.weight.detach().numpy(), "float32")
    bias = relax.const(layer.bias.detach().numpy().reshape(1, -1, 1, 1), "float32")
    conv = builder.emit_te(topi.nn.conv2d, x, weight, 1, 0, 1)
    return builder.emit_te(topi.add, conv, bias)


def start(parameters: Parameters) -> tuple[Constants, relax.Var, relax.BlockBuilder]:
    """The parameters as constants (biases with the rank of what they join), input and builder."""
    shapes = {"conv2d_bias": (1, 32, 1, 1), "linear0_bias": (1, 100), "linear1_bias": (1, 10)}
    constants = {
        name: relax.const(value.reshape(shapes.get(name, value.shape)), "float32")
        for name, value in parameters.items()
    }
    x = relax.Var("x", relax.TensorStructInfo((BATCH, 1, 28, 28), "float32"))
    return constants, x, relax.BlockBuilder()


def emit_convolution(builder: relax.BlockBuilder, x: relax.Expr, p: Constants) -> relax.Var:
    """Convolution and its bias."""
    conv = builder.emit_te(topi.nn.conv2d, x, p["conv2d_weight"], 1, 0, 1)
    return builder.emit_te(topi.add, conv, p["conv2d_bias"])


def emit_pool(builder: relax.BlockBuilder, x: relax.Expr) -> relax.Var:
    """The maximum of each 2 by 2 window."""
    return builder.emit_te(topi.nn.pool2d, x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")


def emit_head(
    builder: relax.BlockBuilder, conv: relax.Expr, p: Constants, library: bool = False
) -> relax.Var:
    """All that follows the convolution; ``library``: linear layers by a registered function."""
    pooled = emit_pool(builder, builder.emit_te(topi.nn.relu, conv))
    value = builder.emit_te(topi.nn.flatten, pooled)
    for name, width in (("linear0", 100), ("linear1", 10)):
        weight, bias = p[f"{name}_weight"], p[f"{name}_bias"]
        if library:
            info = relax.TensorStructInfo((BATCH, width), "float32")
            arguments = relax.Tuple([value, weight, bias])
            value = builder.emit(relax.op.call_dps_packed("demo.linear", arguments, info))
        else:
            value = builder.emit_te(topi.add, builder.emit_te(topi.nn.dense, value, weight), bias)
        if name == "linear0":
            value = builder.emit_te(topi.nn.relu, value)
    return builder.emit_te(topi.nn.softmax, value)


def register_convolution() -> None:
    """Register ``demo.conv2d`` (with bias): torch's where it is installed, else numpy's."""
    try:
        from torch import from_dlpack  # noqa: PLC0415 - optional
        from torch.nn import functional  # noqa: PLC0415 - optional
    except ImportError:

        def conv2d(x: NDArray, w: NDArray, b: NDArray, out: NDArray) -> None:
            x_, w_, b_, out_ = (np.from_dlpack(array) for array in (x, w, b, out))
            np.copyto(out_, numpy_convolution(x_, w_) + b_.reshape(1, 32, 1, 1))
    else:

        def conv2d(x: NDArray, w: NDArray, b: NDArray, out: NDArray) -> None:
            x_, w_, b_, out_ = (from_dlpack(array) for array in (x, w, b, out))
            out_.copy_(functional.conv2d(x_, w_, b_.flatten()))

    weft.register_func("demo.conv2d", conv2d, override=True)


def numpy_convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A convolution of one input channel as one matrix product over sliding windows."""
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), axis=(1, 2))
    product = windows.reshape(len(x), 26 * 26, 9) @ w.reshape(len(w), 9).T
    conv: np.ndarray = product.transpose(0, 2, 1).reshape(len(x), len(w), 26, 26)
    return conv


def numpy_model(parameters: Parameters, images: np.ndarray) -> np.ndarray:
    """The same probabilities by numpy."""
    p = parameters
    conv = numpy_convolution(images, p["conv2d_weight"]) + p["conv2d_bias"].reshape(1, 32, 1, 1)
    pooled = conv.reshape(len(images), 32, 13, 2, 13, 2).max(axis=(3, 5))
    flat = np.maximum(pooled, 0).reshape(len(images), 5408)
    hidden = np.maximum(flat @ p["linear0_weight"].T + p["linear0_bias"], 0)
    scores = hidden @ p["linear1_weight"].T + p["linear1_bias"]
    shifted: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def torch_model(parameters: Parameters) -> Any:
    """The same model in PyTorch."""
    import torch  # noqa: PLC0415 - optional
    from torch import nn  # noqa: PLC0415 - optional

    model = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(5408, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
        nn.Softmax(dim=1),
    )
    names = {
        "0.weight": "conv2d_weight",
        "0.bias": "conv2d_bias",
        "4.weight": "linear0_weight",
        "4.bias": "linear0_bias",
        "6.weight": "linear1_weight",
        "6.bias": "linear1_bias",
    }
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(parameters[names[name]])
    return model.eval()
