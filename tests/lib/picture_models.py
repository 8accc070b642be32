"""Small models whose pictures tests look at."""

from __future__ import annotations

import numpy as np

from weft import relax
from weft.ir.module import IRModule


def weight(*shape: int, seed: int = 0) -> relax.Constant:
    """A constant of float32."""
    values = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    return relax.const(values / 8, "float32")


def convolutional() -> IRModule:
    """A convolution with bias and relu, a pool, and two layers."""
    x = relax.Var("x", relax.TensorStructInfo((1, 1, 28, 28), "float32"))
    nn, builder = relax.op.nn, relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            image = builder.emit(nn.conv2d(x, weight(16, 1, 3, 3)))
            image = builder.emit(nn.relu(relax.op.add(image, weight(1, 16, 1, 1, seed=1))))
            image = builder.emit(nn.max_pool2d(image, (2, 2), (2, 2)))
            row = builder.emit(relax.op.reshape(image, (1, 16 * 13 * 13)))
            row = builder.emit(nn.relu(relax.op.matmul(row, weight(16 * 13 * 13, 64, seed=2))))
            out = builder.emit_output(relax.op.matmul(row, weight(64, 10, seed=3)))
        builder.emit_func_output(out)
    module: IRModule = builder.get()
    return module


def layered(rows: object = 20) -> IRModule:
    """Two layers with softmax, for a number of rows that may be a symbol."""
    x = relax.Var("x", relax.TensorStructInfo((rows, 256), "float32"))
    nn, builder = relax.op.nn, relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(nn.relu(relax.op.matmul(x, weight(256, 128))))
            scores = builder.emit(relax.op.matmul(hidden, weight(128, 10, seed=1)))
            out = builder.emit_output(nn.softmax(scores))
        builder.emit_func_output(out)
    module: IRModule = builder.get()
    return module
