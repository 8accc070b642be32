"""Graphs of the shape of well-known models, without their weights: parameters are inputs.

For benchmarks and tests of passes: ResNet-50 (He et al., 2016), BERT-base (Devlin et al., 2019), a
Llama decoder (Touvron et al., 2023) over a prompt of symbolic length. ``num_input`` says which
parameters are data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.module import IRModule
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Var, const
from weft.relax.struct_info import TensorStructInfo
from weft.tir.expr import Var as TirVar


class GraphWriter:
    """Collects parameters and emits operators of one dataflow block."""

    def __init__(self) -> None:
        self.builder = BlockBuilder()
        self.params: list[Var] = []

    def param(self, name: str, *shape: Any, dtype: str = "float32") -> Var:
        """A new parameter."""
        var = Var(f"{name}_{len(self.params)}", TensorStructInfo(shape, dtype))
        self.params.append(var)
        return var

    def emit(self, call: Any) -> Any:
        """Bind the value of a call."""
        return self.builder.emit(call)

    def dense(self, x: Any, inputs: int, outputs: int, *, bias: bool = True) -> Any:
        """x @ W + b."""
        y = self.emit(op.matmul(x, self.param("weight", inputs, outputs)))
        return self.emit(op.add(y, self.param("bias", outputs))) if bias else y

    def build(self, inputs: Sequence[Var], body: Callable[[], Any]) -> IRModule:
        """The module with ``main`` of the inputs and all parameters that the body makes."""
        with self.builder.function("main", attrs={"num_input": len(inputs)}):
            with self.builder.dataflow():
                out = self.builder.emit_output(body())
            self.builder.emit_func_output(out, [*inputs, *self.params])
        return self.builder.get()


def resnet50(size: int = 224, blocks: Sequence[int] = (3, 4, 6, 3)) -> IRModule:
    """ResNet-50 on one image: convolutions with folded batch norms, bottleneck blocks."""
    g = GraphWriter()
    image = Var("image", TensorStructInfo((1, 3, size, size), "float32"))

    def conv(x: Any, inputs: int, outputs: int, kernel: int, stride: int = 1) -> Any:
        weight = g.param("weight", outputs, inputs, kernel, kernel)
        y = g.emit(op.nn.conv2d(x, weight, strides=stride, padding=kernel // 2))
        return g.emit(op.add(y, g.param("bias", 1, outputs, 1, 1)))

    def bottleneck(x: Any, inputs: int, width: int, stride: int) -> Any:
        y = g.emit(op.nn.relu(conv(x, inputs, width, 1)))
        y = g.emit(op.nn.relu(conv(y, width, width, 3, stride)))
        y = conv(y, width, 4 * width, 1)
        short = x if inputs == 4 * width else conv(x, inputs, 4 * width, 1, stride)
        return g.emit(op.nn.relu(g.emit(op.add(y, short))))

    def body() -> Any:
        x = g.emit(op.nn.relu(conv(image, 3, 64, 7, 2)))
        x = g.emit(op.nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)))
        channels = 64
        for stage, count in enumerate(blocks):
            for index in range(count):
                x = bottleneck(x, channels, 64 << stage, 2 if stage and not index else 1)
                channels = 4 * (64 << stage)
        x = g.emit(op.mean(x, axis=[2, 3]))
        return g.dense(x, channels, 1000)

    return g.build([image], body)


def bert_base(length: int = 128, layers: int = 12, width: int = 768) -> IRModule:
    """The encoder of BERT-base on embedded tokens."""
    g = GraphWriter()
    heads = width // 64
    tokens = Var("tokens", TensorStructInfo((1, length, width), "float32"))

    def split_heads(x: Any) -> Any:
        y = g.emit(op.reshape(x, (1, length, heads, 64)))
        return g.emit(op.permute_dims(y, [0, 2, 1, 3]))

    def norm(x: Any) -> Any:
        scale, shift = g.param("scale", width), g.param("shift", width)
        return g.emit(op.nn.layer_norm(x, scale, shift, axes=[-1]))

    def layer(x: Any) -> Any:
        query, key, value = (split_heads(g.dense(x, width, width)) for _ in range(3))
        scores = g.emit(op.matmul(query, g.emit(op.permute_dims(key, [0, 1, 3, 2]))))
        scores = g.emit(op.divide(scores, const(8.0, "float32")))
        mixed = g.emit(op.matmul(g.emit(op.nn.softmax(scores, axis=-1)), value))
        mixed = g.emit(op.permute_dims(mixed, [0, 2, 1, 3]))
        mixed = g.dense(g.emit(op.reshape(mixed, (1, length, width))), width, width)
        x = norm(g.emit(op.add(x, mixed)))
        hidden = g.emit(op.nn.gelu(g.dense(x, width, 4 * width)))
        return norm(g.emit(op.add(x, g.dense(hidden, 4 * width, width))))

    def body() -> Any:
        x: Any = tokens
        for _ in range(layers):
            x = layer(x)
        return x

    return g.build([tokens], body)


def llama(
    layers: int = 8, width: int = 1024, hidden: int = 2816, vocabulary: int = 32000
) -> IRModule:
    """A Llama decoder over a prompt of ``n`` embedded tokens, with rotary positions."""
    g = GraphWriter()
    heads, size = width // 128, 128
    n = TirVar("n", "int64")
    tokens = Var("tokens", TensorStructInfo((1, n, width), "float32"))
    cosine = Var("cosine", TensorStructInfo((n, size), "float32"))
    sine = Var("sine", TensorStructInfo((n, size), "float32"))
    mask = Var("mask", TensorStructInfo((n, n), "float32"))

    def split_heads(x: Any) -> Any:
        y = g.emit(op.reshape(x, (1, n, heads, size)))
        return g.emit(op.permute_dims(y, [0, 2, 1, 3]))

    def rotated(x: Any) -> Any:
        halves = g.emit(op.split(x, 2, axis=-1))
        first, second = g.emit(halves[0]), g.emit(halves[1])
        turned = g.emit(op.concat([g.emit(op.negative(second)), first], axis=-1))
        straight = g.emit(op.multiply(x, cosine))
        return g.emit(op.add(straight, g.emit(op.multiply(turned, sine))))

    def norm(x: Any) -> Any:
        return g.emit(op.nn.rms_norm(x, g.param("scale", width), axes=[-1]))

    def linear(x: Any, inputs: int, outputs: int) -> Any:
        return g.dense(x, inputs, outputs, bias=False)

    def layer(x: Any) -> Any:
        y = norm(x)
        query, key, value = (split_heads(linear(y, width, width)) for _ in range(3))
        query, key = rotated(query), rotated(key)
        scores = g.emit(op.matmul(query, g.emit(op.permute_dims(key, [0, 1, 3, 2]))))
        scores = g.emit(op.add(g.emit(op.divide(scores, const(size**0.5, "float32"))), mask))
        mixed = g.emit(op.matmul(g.emit(op.nn.softmax(scores, axis=-1)), value))
        mixed = g.emit(op.reshape(g.emit(op.permute_dims(mixed, [0, 2, 1, 3])), (1, n, width)))
        x = g.emit(op.add(x, linear(mixed, width, width)))
        y = norm(x)
        gate = g.emit(op.nn.silu(linear(y, width, hidden)))
        gated = g.emit(op.multiply(gate, linear(y, width, hidden)))
        return g.emit(op.add(x, linear(gated, hidden, width)))

    def body() -> Any:
        x: Any = tokens
        for _ in range(layers):
            x = layer(x)
        return linear(norm(x), width, vocabulary)

    return g.build([tokens, cosine, sine, mask], body)
