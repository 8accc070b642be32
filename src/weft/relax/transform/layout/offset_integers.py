"""OffsetIntegers: products of bytes become products of uint8 and int8, if a processor has these.

Its instruction adds up four such products in the time in which one for int16 adds up two. One
instruction (``vpmaddubsw``) does so only for some weights (``byte_products``).

Before: ``matmul(x - z, w, out_dtype="int32")``, where ``x`` is int8 or uint8, ``z`` is its zero
point, and ``w`` is a constant whose values int8 holds. After:
``matmul(u, w, out_dtype="int32") - offset * sums``. Here ``u`` is ``x`` as uint8 (``x + 128`` if
``x`` is int8), ``offset`` is ``z`` (``z + 128`` if ``x`` is int8), and ``sums`` are the sums of the
columns of ``w``, a constant. Convolutions are treated alike; their images are padded with the
offset, which stands for zero. All this is exact modulo 2**32, as sums in int32 are (Jacob et al.,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
2018, section 2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr, Function, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.layout.byte_products import has_byte_products, multiplies_exactly
from weft.relax.transform.layout.centred import centred_of, known, sizes_of
from weft.relax.transform.passes import define_operator_pass
from weft.target.machine import Machine, machine_of
from weft.target.target import Target

_MATMUL = Op.get("relax.matmul")
_SIGNED: Final = 128
"""What is added to an int8 to make it a uint8."""


@dataclass(frozen=True)
class _Offset:
    """What has to be subtracted from the bytes of an operand: ``tensor + number``."""

    tensor: Expr | None
    """A zero point that is not known when the model is built; None if there is none."""
    number: np.ndarray
    """The known part, an array of int32."""

    @property
    def is_zero(self) -> bool:
        return self.tensor is None and not self.number.any()


class _Offsetter(PyExprMutator):
    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine

    def visit_call_(self, call: Call) -> Expr:
        rewritten = expect(super().visit_call_(call), Call)
        if not isinstance(rewritten, Call) or rewritten.op not in (_MATMUL, IMAGE_CONVOLUTION):
            return rewritten
        if str(rewritten.attrs["out_dtype"]) != "int32":
            return rewritten
        data = centred_of(rewritten.args[0], self.lookup_binding)
        weights = known(rewritten.args[1], self.lookup_binding)
        if data is None or weights is None or not _is_signed_byte(weights):
            return rewritten
        if not multiplies_exactly(self.machine, rewritten, weights):
            return rewritten
        offset = self.offset_of(data.zero, str(data.numbers.struct_info.dtype) == "int8")
        change = _matmul if rewritten.op is _MATMUL else _conv2d
        parts = change(rewritten, data.numbers, weights.data.numpy().astype(np.int8), offset)
        return rewritten if parts is None else self.product(parts, data.numbers, offset)

    def offset_of(self, zero: Expr | None, is_signed: bool) -> _Offset:
        extra = np.asarray(_SIGNED if is_signed else 0, np.int32)
        if zero is None:
            return _Offset(None, extra)
        fixed = known(zero, self.lookup_binding)
        if fixed is None:
            return _Offset(zero, extra)
        return _Offset(None, fixed.data.numpy().astype(np.int32) + extra)

    def product(self, parts: _Parts, numbers: Expr, offset: _Offset) -> Expr:
        """The product of uint8 and int8, minus what the offset adds to it."""
        emit = self.builder_.emit
        if str(numbers.struct_info.dtype) == "int8":
            bits = emit(op.astype(numbers, "uint8"))
            numbers = emit(op.bitwise_xor(bits, const(_SIGNED, "uint8")))
        if parts.widths:
            numbers = emit(op.nn.pad(numbers, parts.widths, "constant", float(offset.number)))
        whole = Call(parts.op, [numbers, const(parts.weights)], parts.attrs)
        if offset.is_zero:
            return whole
        extra: Expr = const(offset.number)
        if offset.tensor is not None:
            extra = emit(op.add(emit(op.astype(offset.tensor, "int32")), extra))
        return op.subtract(emit(whole), emit(op.multiply(extra, const(parts.sums))))


@dataclass(frozen=True)
class _Parts:
    """A product of bytes: its operator, attributes and weights, the sums of these, and the widths
    by which the image is padded before it.
    """

    op: Op
    attrs: Mapping[str, object]
    weights: np.ndarray
    sums: np.ndarray
    widths: tuple[int, ...] = ()


def _is_signed_byte(weights: Constant) -> bool:
    numbers = weights.data.numpy()
    return numbers.dtype.kind in "iu" and bool(((numbers >= -128) & (numbers <= 127)).all())


def _matmul(call: Call, numbers: Expr, weights: np.ndarray, offset: _Offset) -> _Parts | None:
    """The parts of a product of matrices, if the offset is the same along each row."""
    sizes = sizes_of(numbers)
    shape = offset.number.shape if offset.tensor is None else sizes_of(offset.tensor)
    if sizes is None or len(sizes) < 2 or weights.ndim < 2 or shape is None:
        return None
    if len(shape) and shape[-1] != 1:
        return None
    return _Parts(call.op, call.attrs, weights, weights.sum(-2, dtype=np.int32, keepdims=True))


def _conv2d(call: Call, numbers: Expr, weights: np.ndarray, offset: _Offset) -> _Parts | None:
    """The parts of a convolution of all channels, if the image has one offset.

    If the image is padded, the offset must also be known when the model is built.
    """
    attrs, sizes = call.attrs, geometry_of(call)
    if sizes is None or sizes.layouts.names[:2] != ("NCHW", "OIHW") or not sizes.is_dense:
        return None
    padding = [int(width) for width in attrs["padding"]]
    if offset.number.ndim or (offset.tensor is not None and sizes_of(offset.tensor) != []):
        return None
    if offset.tensor is not None and any(padding):
        return None
    sums = weights.sum((1, 2, 3), dtype=np.int32).reshape(1, -1, 1, 1)
    if not any(padding) or offset.is_zero:
        return _Parts(call.op, attrs, weights, sums)
    if not 0 <= int(offset.number) <= 255:
        return None  # no byte can stand for the zeros around the image
    top, left, bottom, right = padding
    widths = (0, 0, 0, 0, top, bottom, left, right)
    return _Parts(call.op, {**attrs, "padding": [0, 0, 0, 0]}, weights, sums, widths)


def offset_integers(func: Function) -> Function:
    """The function with products of bytes, summed in int32, as uint8 times int8."""
    target = Target.current(allow_none=True)
    machine = machine_of(target)
    return _Offsetter(machine).visit_expr(func) if has_byte_products(machine) else func


OffsetIntegers = define_operator_pass("OffsetIntegers", offset_integers)
