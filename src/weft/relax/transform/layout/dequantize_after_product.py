"""DequantizeAfterProduct: products of dequantized bytes are summed in integers and scaled after.

Before: ``matmul((a - z) * s, (b - y) * t)`` in float32, with ``a`` and ``b`` in int8 or uint8. QDQ
models have this form, with a DequantizeLinear before each operator. After:
``astype(matmul(a - z, b - y), "float32") * (s * t)``, with the matmul in int32, which is exact: the
sum is rounded once instead of at every step (Jacob et al., "Quantization and Training of Neural
Networks for Efficient Integer-Arithmetic-Only Inference", 2018). Convolutions are treated alike.

The pass requires that scales are the same along the reduction, that no sum can overflow int32, and
that the processor has instructions for products of small integers. If its instructions take two
products at a time and not four, convolutions that Winograd's algorithm can compute stay in float32,
since it needs half as many products or fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.transform import FunctionPass
from weft.relax import op
from weft.relax.expr import Call, Expr, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.struct_info import dtype_of
from weft.relax.transform.layout.centred import Centred, centred_of, sizes_of, value_of
from weft.relax.transform.layout.winograd_cost import has_form
from weft.relax.transform.passes import make_operator_pass
from weft.target.machine import machine_of
from weft.target.target import Target

_ASTYPE, _MULTIPLY, _PERMUTE = (
    Op.get(f"relax.{name}") for name in ("astype", "multiply", "permute_dims")
)
_MATMUL = Op.get("relax.matmul")
_LARGEST: Final = 2**31 - 1
"""The largest sum that int32 holds."""


@dataclass(frozen=True)
class _Dequantized:
    """``(numbers - zero) * scale``, with its axes permuted by ``axes`` if that is given."""

    integers: Centred
    scale: Expr
    axes: tuple[int, ...] | None = None


class _Mover(PyExprMutator):
    def __init__(self, has_bytes: bool) -> None:
        super().__init__()
        self.has_bytes = has_bytes
        """Whether an instruction adds up four products of bytes."""

    def visit_call_(self, call: Call) -> Expr:
        product = expect(super().visit_call_(call), Call)
        if not isinstance(product, Call) or product.op not in (_MATMUL, IMAGE_CONVOLUTION):
            return product
        if dtype_of(product) != "float32" or (not self.has_bytes and _has_fewer_products(product)):
            return product
        operands = [self.dequantized(arg) for arg in product.args]
        parts = [operand for operand in operands if operand is not None]
        check = _matmul_scales if product.op is _MATMUL else _conv2d_scales
        if len(parts) < len(operands) or not _is_short(product, parts):
            return product
        left, right = [self.scale(part) for part in parts]
        if left is None or right is None or not check(product, left, right):
            return product
        return self.product(product, parts, (left, right))

    def dequantized(self, expr: Expr) -> _Dequantized | None:
        """An operand as bytes with a zero point and a scale; None if it has another form."""
        value = value_of(expr, self.lookup_binding)
        if not isinstance(value, Call):
            return None
        if value.op is _PERMUTE:
            inner, axes = self.dequantized(value.args[0]), value.attrs["axes"]
            if inner is None or inner.axes is not None:
                return None
            order = reversed(range(value.struct_info.ndim)) if axes is None else map(int, axes)
            return replace(inner, axes=tuple(order))
        if value.op is not _MULTIPLY:
            return None
        for numbers, scale in (value.args, reversed(value.args)):
            cast = value_of(numbers, self.lookup_binding)
            if isinstance(cast, Call) and cast.op is _ASTYPE and dtype_of(cast) == "float32":
                centred = centred_of(cast.args[0], self.lookup_binding)
                if centred is not None and sizes_of(centred.numbers) == sizes_of(value):
                    return _Dequantized(centred, scale)
        return None

    def scale(self, part: _Dequantized) -> Expr | None:
        """The scale, permuted as the operand is; None if it has another rank."""
        sizes = sizes_of(part.scale)
        if part.axes is None or not sizes:
            return part.scale
        if len(sizes) != len(part.axes):
            return None
        return self.builder_.emit(op.permute_dims(part.scale, part.axes))

    def product(self, call: Call, parts: Sequence[_Dequantized], scales: tuple[Expr, Expr]) -> Expr:
        emit = self.builder_.emit
        attrs = {**call.attrs, "out_dtype": "int32"}
        total = emit(Call(call.op, [self.integers(part) for part in parts], attrs))
        left, right = scales
        if call.op is IMAGE_CONVOLUTION and sizes_of(right):
            right = emit(op.reshape(right, [1, -1, 1, 1]))
        factor = emit(op.multiply(left, right))
        return op.multiply(emit(op.astype(total, "float32")), factor)

    def integers(self, part: _Dequantized) -> Expr:
        emit, integers = self.builder_.emit, part.integers
        numbers = emit(op.astype(integers.numbers, "int16"))
        if integers.zero is not None:
            zero = emit(op.astype(integers.zero, "int16"))
            numbers = emit(op.subtract(numbers, zero))
        return numbers if part.axes is None else emit(op.permute_dims(numbers, part.axes))


def _matmul_scales(call: Call, left: Expr, right: Expr) -> bool:
    """Whether the left scale is constant along rows, and the right one along columns."""
    sizes = sizes_of(call.args[0])
    if not sizes or len(sizes_of(call.args[1]) or ()) < 2:
        return False
    rows, columns = sizes_of(left), sizes_of(right)
    if rows is None or columns is None or len(sizes) < 2:
        return False
    return (not rows or rows[-1] == 1) and (len(columns) < 2 or columns[-2] == 1)


def _conv2d_scales(call: Call, left: Expr, right: Expr) -> bool:
    """Whether the image has one scale, and the kernel has one, or one for each filter."""
    geometry, sizes = geometry_of(call), sizes_of(right) if right is not None else None
    if geometry is None or sizes is None or left is None or sizes_of(left) != []:
        return False
    if geometry.layouts.names != ("NCHW", "OIHW", "NCHW") or not geometry.is_dense:
        return False
    return not sizes or (len(sizes) == 4 and sizes[1:] == [1, 1, 1])


def _has_fewer_products(call: Call) -> bool:
    """Whether Winograd's algorithm can compute a call, with fewer products."""
    sizes = geometry_of(call) if call.op is IMAGE_CONVOLUTION else None
    return sizes is not None and has_form(sizes)


def _is_short(call: Call, parts: Sequence[_Dequantized]) -> bool:
    """Whether no sum overflows int32 even if all operands have their largest values."""
    sizes = sizes_of(call.args[0]) if call.op is _MATMUL else sizes_of(call.args[1])
    steps = (sizes or [None])[-1:] if call.op is _MATMUL else (sizes or [None])[1:]
    if any(size is None for size in steps):
        return False
    return (
        math.prod([*[step or 0 for step in steps], *[part.integers.reach for part in parts]])
        <= _LARGEST
    )


def _moved(func: Function) -> Function:
    target = Target.current(allow_none=True)
    machine = machine_of(target)
    return _Mover(machine.multiplies_bytes).visit_expr(func) if machine.dot_products else func


def DequantizeAfterProduct() -> FunctionPass:  # noqa: N802 - a pass
    """Sum products of dequantized bytes in int32 and scale the sums."""
    return make_operator_pass("DequantizeAfterProduct", _moved)
