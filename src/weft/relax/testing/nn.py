"""``relax.testing.nn``: layers that emit into the current BlockBuilder, as TVM's tests use them.

Models of users are written with ``relax.frontend.nn``.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import ExprLike
from weft.relax.block_builder import BlockBuilder
from weft.relax.builder.te_builder import TeFunction
from weft.relax.expr import Expr, Var
from weft.relax.op.binary import add
from weft.relax.op.linear_algebra import matmul
from weft.relax.op.nn import log_softmax, relu
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRValueError, wrong_type


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise IRValueError("relax.testing.nn: expected a BlockBuilder with an open function")
    return builder


def emit(expr: Expr, name_hint: str = "") -> Var:
    """Bind an expression in the current function."""
    return _builder().emit(expr, name_hint)


def emit_te(func: TeFunction, *args: object, **kwargs: object) -> Var:
    """Bind a call of a tensor-expression function in the current function."""
    return _builder().emit_te(func, *args, **kwargs)


def _unique(name: str) -> str:
    """The name, with a number if the current builder has used it already."""
    builder = BlockBuilder.current()
    return name if builder is None else builder.get_unique_name(name)


class Placeholder(Var):
    """An input of the model."""

    __slots__ = ()

    def __init__(
        self, shape: Sequence[ExprLike], dtype: str = "float32", name: str = "data"
    ) -> None:
        super().__init__(_unique(name), _info(shape, dtype))


class Parameter(Var):
    """A weight of the model."""

    __slots__ = ()

    def __init__(
        self, shape: Sequence[ExprLike], dtype: str = "float32", name: str = "param"
    ) -> None:
        super().__init__(_unique(name), _info(shape, dtype))


def _info(shape: Sequence[ExprLike], dtype: str) -> TensorStructInfo:
    if not isinstance(shape, list | tuple):
        raise wrong_type("expected a list or a tuple as shape", shape)
    return TensorStructInfo(shape, dtype)


class Module:
    """A layer or a model; a subclass says in ``forward`` what it computes.

    ``parameters`` are the weights in it and in the layers it holds, in order of definition.
    """

    def parameters(self) -> list[Parameter]:
        """The weights."""
        parameters: list[Parameter] = []
        for value in vars(self).values():
            parameters += _parameters(value)
        return parameters

    def forward(self, *args: Expr) -> Expr:
        """The result for inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Expr) -> Expr:
        return self.forward(*args)


def _parameters(value: object) -> list[Parameter]:
    if isinstance(value, Parameter):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [param for item in value for param in _parameters(item)]
    return []


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, *args: Expr) -> Expr:
        """The result of the last layer."""
        (value,) = args
        for module in self.modules:
            value = module(value)
        return value


class ReLU(Module):
    """The positive part."""

    def forward(self, *args: Expr) -> Expr:
        """``relu`` of the input."""
        (data,) = args
        return emit(relu(data))


class LogSoftmax(Module):
    """The logarithm of softmax over the last axis."""

    def forward(self, *args: Expr) -> Expr:
        """``log_softmax`` of the input."""
        (data,) = args
        return emit(log_softmax(data))


class Linear(Module):
    """``x @ weight + bias``; ``weight`` is (in_features, out_features)."""

    def __init__(self, in_features: ExprLike, out_features: ExprLike, bias: bool = True) -> None:
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, *args: Expr) -> Expr:
        """The product of the input and the weight, plus the bias."""
        (data,) = args
        product = emit(matmul(data, self.weight))
        return product if self.bias is None else emit(add(product, self.bias))
