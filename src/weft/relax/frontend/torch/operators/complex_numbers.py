"""Complex numbers, as their real and imaginary parts.

Most operators do to each part what they do to real tensors (``COMPONENTWISE``), or are linear in
each of two operands (``BILINEAR``); both call the converters of real tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeGuard

from torch.utils import _pytree as pytree

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.complex_tensor import COMPLEX, is_complex
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import CONVERTERS, C, Converter, converter
from weft.relax.frontend.torch.values import ComplexTensor, Operand, Value
from weft.support.errors import UnsupportedError

ComplexOperand = Operand | ComplexTensor | complex
"""A tensor or a number, complex or not."""
VALUES: Final[dict[tuple[int, ...], str]] = {
    (0,): """
        view.default _unsafe_view.default reshape.default _reshape_alias.default
        flatten.using_ints unflatten.int view_copy.default view_as.default ravel.default
        alias.default detach.default contiguous.default clone.default lift_fresh_copy.default
        lift_fresh.default resolve_conj.default resolve_neg.default expand.default
        expand_as.default broadcast_to.default permute.default transpose.int swapaxes.default
        t.default mT.default squeeze.default squeeze.dim squeeze.dims unsqueeze.default
        repeat.default tile.default select.int slice.Tensor split.Tensor split_with_sizes.default
        chunk.default unbind.int narrow.default index.Tensor index_select.default gather.default
        flip.default roll.default diagonal.default unfold.default as_strided.default
        sum.default sum.dim_IntList mean.default mean.dim cumsum.default neg.default tril.default
        triu.default cat.default stack.default scalar_tensor.default
        zeros_like.default empty_like.default
    """,
    (): """
        zeros.default empty.memory_format new_zeros.default new_empty.default
        empty_strided.default new_empty_strided.default empty_permuted.default
    """,
    (1,): "full.default full_like.default fill.Scalar fill.Tensor",
    (2,): "new_full.default",
    (0, 1): """
        add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar slice_scatter.default
        select_scatter.default copy.default diagonal_scatter.default as_strided_scatter.default
    """,
    (0, 2): """
        masked_fill.Scalar masked_fill.Tensor index_put.default constant_pad_nd.default
        masked_scatter.default
    """,
    (1, 2): "where.self where.ScalarOther where.ScalarSelf where.Scalar",
    (0, 3): "scatter.src scatter.value scatter_add.default index_add.default",
}
"""Positions of complex arguments -> operators that do the same to real and imaginary parts."""
COMPONENTWISE: Final = {
    f"aten.{name}": places for places, names in VALUES.items() for name in names.split()
}
"""The places of ``VALUES``, by overload."""
BILINEAR: Final = (
    "aten.mul.Tensor", "aten.mul.Scalar", "aten.mm.default", "aten.bmm.default", "aten.mv.default",
    "aten.matmul.default", "aten.dot.default", "aten.outer.default",
)  # fmt: skip
"""Products of two operands."""


def part(value: Value, imaginary: bool) -> Value:
    """One part of a complex value; a real one has 0 as its imaginary part."""
    if isinstance(value, list | tuple):
        return [part(item, imaginary) for item in value]
    if isinstance(value, ComplexTensor):
        return value.imaginary if imaginary else value.real
    if isinstance(value, complex):
        return value.imag if imaginary else value.real
    if not imaginary or value is None:
        return value
    return op.zeros_like(value) if _is_tensor(value) else 0.0


def _is_tensor(value: Value) -> TypeGuard[Expr]:
    return isinstance(value, Expr) and not isinstance(value, PrimValue)


def paired(context: Context, real: Expr, imaginary: Expr) -> ComplexTensor:
    """The complex tensor of its parts."""
    return ComplexTensor(context.emit(real), context.emit(imaginary))


def _paired(context: Context, real: Value, imaginary: Value) -> Value:
    """Complex tensors of their parts: of two tensors, or of two lists of them."""
    if isinstance(real, list | tuple) and isinstance(imaginary, list | tuple):
        return [_paired(context, *both) for both in zip(real, imaginary, strict=True)]
    return paired(context, expect(real, Expr), expect(imaginary, Expr))


def _componentwise(name: str, places: Sequence[int]) -> Converter:
    def convert(context: Context, *args: Value, **keywords: Value) -> Value:
        for keyword, value in keywords.items():
            if isinstance(value, complex) and value.imag:
                raise UnsupportedError(f"{name}: expected a real number as {keyword}, got {value}")
        results: list[Value] = []
        for imaginary in (False, True)[: 1 + _gives_complex(context)]:
            parts = [
                part(item, imaginary)
                if place in places or isinstance(item, ComplexTensor)
                else item
                for place, item in enumerate(args)
            ]
            others = {key: part(value, False) for key, value in keywords.items()}
            operands = [_emitted(context, item) for item in parts]
            results.append(CONVERTERS[name](context, *operands, **others))
        return _paired(context, *results) if len(results) == 2 else results[0]

    return convert


def _gives_complex(context: Context) -> bool:
    """Whether the node's results are complex; ``new_zeros`` of a real type are not."""
    return any(map(is_complex, pytree.tree_leaves(context.node.meta["val"])))


def _emitted(context: Context, value: Value) -> Value:
    return context.emit(value) if _is_tensor(value) else value


for _name, _places in COMPONENTWISE.items():
    CONVERTERS[_name + COMPLEX] = _componentwise(_name, _places)


def planes_of(value: ComplexOperand) -> tuple[Operand, Operand | None]:
    """(real, imaginary) of an operand; the imaginary part of a real one is None."""
    if isinstance(value, ComplexTensor):
        return value.real, value.imaginary
    if isinstance(value, complex):
        return value.real, value.imag
    return value, None


def bilinear(
    context: Context,
    function: Callable[[Context, Operand, Operand], Value],
    first: ComplexOperand,
    second: ComplexOperand,
) -> ComplexTensor:
    """The product of two operands, one of them complex, by up to four products of real ones."""
    (a, b), (c, d) = planes_of(first), planes_of(second)

    def product(x: Operand | None, y: Operand | None) -> Expr | None:
        if x is None or y is None:
            return None
        return context.emit(expect(function(context, x, y), Expr))

    def joined(x: Expr | None, y: Expr | None, how: Callable[[Expr, Expr], Expr]) -> Expr:
        if x is None or y is None:
            return expect(y if x is None else x, Expr)
        return context.emit(how(x, y))

    return ComplexTensor(
        joined(product(a, c), product(b, d), op.subtract),
        joined(product(a, d), product(b, c), op.add),
    )


def _product(name: str) -> Converter:
    return lambda context, first, second: bilinear(context, CONVERTERS[name], first, second)


for _name in BILINEAR:
    CONVERTERS[_name + COMPLEX] = _product(_name)


def complex_converter(*overloads: str) -> Callable[[C], C]:
    """Decorator: the function converts these overloads where complex numbers take part."""
    return converter(*(name + COMPLEX for name in overloads))


@complex_converter("aten.einsum.default")
def einsum(
    context: Context, equation: str, tensors: Sequence[ComplexOperand], **_: object
) -> ComplexOperand:
    """Einstein's sum convention, of two operands at a time from the left."""
    result = tensors[0]
    for pair, tensor in zip(equations_of_pairs(equation), tensors[1:], strict=True):

        def contracted(context: Context, x: Operand, y: Operand, pair: str = pair) -> Value:
            return CONVERTERS["aten.einsum.default"](context, pair, [x, y])

        result = bilinear(context, contracted, result, tensor)
    return result


def equations_of_pairs(equation: str) -> list[str]:
    """The equations that contract the first two operands, then the result and the third ..."""
    words, arrow, out = equation.replace(" ", "").partition("->")
    left, *terms = words.split(",")
    if len(terms) == 1:
        return [equation]
    if not terms or "..." in equation:
        raise UnsupportedError(
            f"einsum of complex numbers: expected a letter for each axis of two operands or more, "
            f"got {equation!r}; multiply them two at a time"
        )
    if not arrow:
        out = "".join(letter for letter in sorted({*words} - {","}) if words.count(letter) == 1)
    pairs = []
    for place, term in enumerate(terms):
        later = {*out}.union(*terms[place + 1 :])
        kept = "".join(letter for letter in dict.fromkeys(left + term) if letter in later)
        if place == len(terms) - 1:
            kept = out
        pairs.append(f"{left},{term}->{kept}")
        left = kept
    return pairs


@complex_converter("aten.linear.default")
def linear(
    context: Context,
    input: ComplexOperand,
    weight: ComplexOperand,
    bias: ComplexOperand | None = None,
) -> Value:
    """``input @ weight^T + bias``."""
    product = bilinear(context, CONVERTERS["aten.linear.default"], input, weight)
    if bias is None:
        return product
    return CONVERTERS["aten.add.Tensor" + COMPLEX](context, product, bias)


# Between real and complex numbers


@complex_converter("aten.complex.default")
def make_complex(context: Context, real: Expr, imag: Expr) -> ComplexTensor:
    """The complex numbers of these parts."""
    shape = context.shape
    return paired(context, op.broadcast_to(real, shape), op.broadcast_to(imag, shape))


@complex_converter("aten.polar.default")
def polar(context: Context, abs: Expr, angle: Expr) -> ComplexTensor:
    """The complex numbers of these lengths and angles."""
    return paired(
        context,
        op.multiply(abs, context.emit(op.cos(angle))),
        op.multiply(abs, context.emit(op.sin(angle))),
    )


@complex_converter("aten.view_as_complex.default", "aten.view_as_complex_copy.default")
def view_as_complex(context: Context, self: Expr) -> ComplexTensor:
    """Complex numbers from pairs along the last dimension."""
    axis = context.rank(self) - 1
    real, imaginary = (op.take(self, const(place), axis) for place in (0, 1))
    return paired(context, real, imaginary)


@complex_converter("aten.view_as_real.default", "aten.view_as_real_copy.default")
def view_as_real(context: Context, self: ComplexTensor) -> Expr:
    """Pairs of real numbers along a new last dimension."""
    return op.stack([self.real, self.imaginary], len(context.shape) - 1)


@complex_converter("aten.real.default")
def real(context: Context, self: ComplexTensor) -> Expr:
    """The real parts."""
    return self.real


@complex_converter("aten.imag.default")
def imag(context: Context, self: ComplexTensor) -> Expr:
    """The imaginary parts."""
    return self.imaginary


@complex_converter("aten._to_copy.default", "aten.to.dtype")
def to_copy(
    context: Context, self: Expr | ComplexTensor, *_: object, **__: object
) -> Expr | ComplexTensor:
    """Another type; the real parts where that is real."""
    dtype = context.dtype
    if not _gives_complex(context):
        return context.cast(expect(part(self, False), Expr), dtype)
    real, imaginary = (context.cast(item, dtype) for item in _parts(context, self))
    return paired(context, real, imaginary)


def _parts(context: Context, value: ComplexOperand) -> tuple[Expr, Expr]:
    """The real and the imaginary part of a tensor."""
    real, imaginary = (context.emit(expect(part(value, side), Expr)) for side in (False, True))
    return real, imaginary


@complex_converter("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(context: Context, *_: object, **__: object) -> Expr | ComplexTensor:
    """1 everywhere."""
    shape, dtype = context.shape, context.dtype
    units = op.ones(shape, dtype)
    return paired(context, units, op.zeros(shape, dtype)) if _gives_complex(context) else units


# Functions


@complex_converter("aten.abs.default")
def absolute(context: Context, self: ComplexTensor) -> Expr:
    """The distances from 0, without overflow on the way."""
    return expect(CONVERTERS["aten.hypot.default"](context, self.real, self.imaginary), Expr)


@complex_converter("aten.angle.default")
def angle(context: Context, self: ComplexTensor) -> Expr:
    """The angles, in (-pi, pi]."""
    return expect(CONVERTERS["aten.atan2.default"](context, self.imaginary, self.real), Expr)


@complex_converter(
    "aten.conj_physical.default", "aten._conj.default", "aten._conj_physical.default",
    "aten.conj.default",
)  # fmt: skip
def conjugate(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The imaginary parts with the other sign."""
    return paired(context, self.real, op.negative(self.imaginary))


@complex_converter("aten.exp.default")
def exp(context: Context, self: ComplexTensor) -> ComplexTensor:
    """exp(real) at the angle of the imaginary part."""
    return polar(context, context.emit(op.exp(self.real)), self.imaginary)


@complex_converter("aten.log.default")
def log(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The logarithm of the length, and the angle."""
    length = context.emit(absolute(context, self))
    return paired(context, op.log(length), angle(context, self))


@complex_converter("aten.div.Tensor", "aten.div.Scalar")
def divide(context: Context, self: ComplexOperand, other: ComplexOperand) -> ComplexTensor:
    """Quotients; both sides are divided by the length of the divisor first, so none overflows."""
    below, beside = planes_of(other)
    quotient = CONVERTERS["aten.div.Tensor"]
    if beside is None:
        real, imaginary = (
            expect(quotient(context, item, below), Expr) for item in _parts(context, self)
        )
        return paired(context, real, imaginary)
    if isinstance(other, complex):
        return bilinear(context, CONVERTERS["aten.mul.Tensor"], self, 1 / other)
    length = context.emit(absolute(context, expect(other, ComplexTensor)))
    unit = [context.emit(op.divide(item, length)) for item in (below, beside)]
    turn = ComplexTensor(unit[0], context.emit(op.negative(unit[1])))
    turned = bilinear(context, CONVERTERS["aten.mul.Tensor"], self, turn)
    return paired(context, op.divide(turned.real, length), op.divide(turned.imaginary, length))


@complex_converter("aten.reciprocal.default")
def reciprocal(context: Context, self: ComplexTensor) -> ComplexTensor:
    """1 divided by each."""
    return divide(context, context.emit(op.ones_like(self.real)), self)


@complex_converter("aten.sgn.default")
def sgn(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The numbers of length 1 at the same angles; 0 of 0."""
    length = context.emit(absolute(context, self))
    none = context.emit(op.equal(length, context.operand(0, context.dtype)))
    zero = context.emit(op.zeros_like(length))
    quotients = (op.divide(item, length) for item in (self.real, self.imaginary))
    real, imaginary = (op.where(none, zero, context.emit(item)) for item in quotients)
    return paired(context, real, imaginary)
