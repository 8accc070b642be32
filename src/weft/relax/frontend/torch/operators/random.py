"""Random tensors: calls of the runtime's generator (``weft.random.seed`` sets it).

The numbers are not PyTorch's; shape, data type and distribution are. Within ``torch.compile`` they
are drawn from PyTorch's own generator (``weft.dynamo.random``).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent, PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, ExternFunc, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Operand, Scalar
from weft.relax.struct_info import TensorStructInfo
from weft.tir import op as tir_op


def drawn(
    context: Context,
    name: str,
    *args: Operand,
    shape: Sequence[Extent] | None = None,
    dtype: str | None = None,
) -> Expr:
    """A call of the generator's function ``name`` that fills a tensor, the node's result unless
    told; the generator is ``weft.random``, or the one of the import.
    """
    info = TensorStructInfo(context.shape if shape is None else shape, dtype or context.dtype)
    # a number for each call, so that equal calls are not merged; a nested graph may run twice
    stream = PrimValue(tir_op.const(next(context.symbols.draws), "int64"))
    operands = [arg if isinstance(arg, Expr) else PrimValue(_scalar(arg)) for arg in args]
    function = ExternFunc(f"{context.symbols.generator}.{name}")
    return context.emit(op.call_dps_packed(function, [stream, *operands], info))


def _scalar(value: Scalar) -> PrimExpr:
    if isinstance(value, PrimExpr):
        return value
    return tir_op.const(value, "float64" if isinstance(value, float) else "int64")


@converter("aten.rand.default", "aten.rand_like.default", "aten.rand.generator",
           "aten.rand_like.generator")  # fmt: skip
def rand(context: Context, *_: object, **__: object) -> Expr:
    """Uniform in [0, 1)."""
    return drawn(context, "uniform", 0.0, 1.0)


@converter("aten.randn.default", "aten.randn_like.default", "aten.randn.generator",
           "aten.randn_like.generator")  # fmt: skip
def randn(context: Context, *_: object, **__: object) -> Expr:
    """Normal with mean 0 and deviation 1."""
    return drawn(context, "normal", 0.0, 1.0)


@converter("aten.randint.default", "aten.randint.generator")
def randint(context: Context, high: Extent, *_: object, **__: object) -> Expr:
    """Integers in [0, high)."""
    return drawn(context, "integers", 0, high)


@converter("aten.randint.low", "aten.randint.low_generator")
def randint_low(context: Context, low: Extent, high: Extent, *_: object, **__: object) -> Expr:
    """Integers in [low, high)."""
    return drawn(context, "integers", low, high)


@converter("aten.randint_like.default")
def randint_like(context: Context, self: Expr, high: Extent, **_: object) -> Expr:
    """Integers in [0, high)."""
    return drawn(context, "integers", 0, high)


@converter("aten.randint_like.low_dtype")
def randint_like_low(context: Context, self: Expr, low: Extent, high: Extent, **_: object) -> Expr:
    """Integers in [low, high)."""
    return drawn(context, "integers", low, high)


@converter("aten.randperm.default", "aten.randperm.generator")
def randperm(context: Context, n: Extent, **_: object) -> Expr:
    """The numbers 0 .. n - 1 in random order."""
    return drawn(context, "permutation")


@converter("aten.bernoulli.default")
def bernoulli(context: Context, self: Expr) -> Expr:
    """1 with the probability that each element gives."""
    return drawn(context, "bernoulli", self)


@converter("aten.bernoulli.Tensor")
def bernoulli_of(context: Context, self: Expr, p: Expr) -> Expr:
    """1 with the probabilities of ``p``, in the shape of ``self``."""
    return drawn(context, "bernoulli", context.emit(op.broadcast_to(p, context.shape)))


@converter("aten.bernoulli.p")
def bernoulli_p(context: Context, self: Expr, p: float = 0.5) -> Expr:
    """1 with probability p, in the shape of ``self``."""
    uniform = drawn(context, "uniform", 0.0, 1.0, dtype="float64")
    return context.cast(_below(context, uniform, p), context.dtype)


def _below(context: Context, uniform: Expr, p: float) -> Expr:
    return context.emit(op.less(uniform, const(float(p), "float64")))


@converter("aten.uniform.default")
def uniform(context: Context, self: Expr, *ends: float, **_: object) -> Expr:
    """Uniform between two numbers, [0, 1) unless given."""
    low, high = [*ends, *(0.0, 1.0)[len(ends) :]]
    return drawn(context, "uniform", float(low), float(high))


@converter("aten.normal_functional.default", "aten.normal.out")
def normal_functional(context: Context, self: Expr, mean: float = 0, std: float = 1) -> Expr:
    """Normal in the shape of ``self``."""
    return drawn(context, "normal", float(mean), float(std))


@converter("aten.normal.float_float")
def normal(context: Context, mean: float, std: float, size: Sequence[Extent], **_: object) -> Expr:
    """Normal of a shape."""
    return drawn(context, "normal", float(mean), float(std))


@converter("aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.normal.Tensor_Tensor")
def normal_of(context: Context, mean: Operand = 0.0, std: Operand = 1.0) -> Expr:
    """Normal with a mean and a deviation for each element."""
    wide = [
        context.emit(op.broadcast_to(context.operand(item, context.dtype), context.shape))
        for item in (mean, std)
    ]
    return drawn(context, "normal_of", *wide)


@converter("aten.exponential.default")
def exponential(context: Context, self: Expr, lambd: float = 1) -> Expr:
    """Exponential with rate ``lambd``."""
    return drawn(context, "exponential", float(lambd))


@converter("aten.geometric.default")
def geometric(context: Context, self: Expr, p: float) -> Expr:
    """The number of trials up to the first success."""
    return drawn(context, "geometric", float(p))


@converter("aten.multinomial.default")
def multinomial(
    context: Context, self: Expr, num_samples: Extent, replacement: bool = False
) -> Expr:
    """Places drawn in proportion to the weights of each row."""
    return drawn(context, "multinomial", self, int(replacement))


@converter("aten.native_dropout.default")
def native_dropout(
    context: Context, input: Expr, p: float, train: bool | None = True
) -> tuple[Expr, Expr]:
    """0 with probability p, else scaled by 1 / (1 - p); and which elements are kept."""
    shape, mask_dtype = context.results[1]
    if train is False or p == 0:
        return input, op.full(shape, const(True, mask_dtype), mask_dtype)
    return kept_of(context, input, p)


def kept_of(context: Context, tensor: Expr, p: float) -> tuple[Expr, Expr]:
    """What a dropout of probability p leaves, scaled, and which elements these are."""
    uniform = drawn(context, "uniform", 0.0, 1.0, dtype="float64")
    kept = context.emit(op.greater_equal(uniform, const(float(p), "float64")))
    factor = 0.0 if p == 1 else 1.0 / (1.0 - p)

    dtype = context.dtype_of(tensor)
    scaled = context.emit(op.multiply(tensor, const(factor, dtype)))
    return op.where(kept, scaled, const(0.0, dtype)), kept


@converter("aten.dropout.default")
def dropout(context: Context, input: Expr, p: float, train: bool) -> Expr:
    """The input itself outside of training; else 0 with probability p."""
    return kept_of(context, input, p)[0] if train and p else input
