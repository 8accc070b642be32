"""DequantizeAfterProduct: products of dequantized bytes are summed in integers and scaled after.

Before: ``matmul((a - z) * s, (b - y) * t)`` in float32, with ``a`` and ``b`` in int8 or uint8. QDQ
models have this form, with a DequantizeLinear before each operator. After:
``astype(matmul(a - z, b - y), "float32") * (s * t)``, with the matmul in int32, which is exact: the
sum is rounded once instead of at every step (Jacob et al., "Quantization and Training of Neural
Networks for Efficient Integer-Arithmetic-Only Inference", 2018). Convolutions are treated alike.

The pass requires that scales are the same along the reduction, that no sum can overflow int32, and
that the processor has instructions for products of small integers. If none of these adds up four
products of any bytes at once, convolutions stay in float32 for which Winograd's algorithm is
faster than integers, since it needs half as many products or fewer: as many as there is memory for,
because its weights are floats.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Final, NamedTuple

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.struct_info import dtype_of
from weft.relax.transform.layout.block_channels import blocks_of
from weft.relax.transform.layout.byte_products import multiplies_exactly
from weft.relax.transform.layout.centred import known, sizes_of
from weft.relax.transform.layout.dequantized import Dequantized, dequantized_of
from weft.relax.transform.layout.winograd_choice import (
    Offer,
    affordable,
    form_of_sizes,
    growth_limit,
)
from weft.relax.transform.layout.winograd_cost import (
    cycles,
    direct_cycles,
    form_faster_than,
    growth,
)
from weft.relax.transform.passes import define_operator_pass
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.topi.nn.winograd_matrices import TILES

_MATMUL = Op.get("relax.matmul")
_LARGEST: Final = 2**31 - 1
"""The largest sum that int32 holds."""
_WORD_PAIRS: Final = (1.5, 2)
"""How many times as fast as those of float32 the products of int16 are, and their bytes.

Eight pairs take two instructions, of which three start in a cycle."""
_BYTE_PAIRS: Final = (1.9, 1)
"""The same of bytes whose pairs int16 holds: eight times four take three instructions."""


class _Finder(PyExprMutator):
    """Finds products of dequantized operands."""

    def parts_of(self, product: RelaxExpr) -> _Parts | None:
        """The operands of a product that could be one of integers; None for anything else."""
        if not isinstance(product, Call) or product.op not in (_MATMUL, IMAGE_CONVOLUTION):
            return None
        if dtype_of(product) != "float32":
            return None
        operands = [dequantized_of(arg, self.lookup_binding) for arg in product.args]
        parts = [operand for operand in operands if operand is not None]
        if len(parts) < len(operands) or not _is_short(product, parts):
            return None
        check = _matmul_scales if product.op is _MATMUL else _conv2d_scales
        left, right = [self.scale(part) for part in parts]
        if left is None or right is None or not check(product, left, right):
            return None
        return _Parts(product, parts, (left, right))

    def scale(self, part: Dequantized) -> Expr | None:
        """The scale, permuted as the operand is; None if it has another rank."""
        sizes = sizes_of(part.scale)
        if part.axes is None or not sizes:
            return part.scale
        if len(sizes) != len(part.axes):
            return None
        return self.builder_.emit(op.permute_dims(part.scale, part.axes))


class _Parts(NamedTuple):
    """A product, its dequantized operands, and their scales as the product has their axes."""

    product: Call
    operands: Sequence[Dequantized]
    scales: tuple[Expr, Expr]


class _Mover(_Finder):
    def __init__(self, staying: Container[int]) -> None:
        super().__init__()
        self.staying = staying
        """The ``id`` of each convolution that stays in float32."""

    def visit_call_(self, call: Call) -> RelaxExpr:
        product = super().visit_call_(call)
        parts = None if id(call) in self.staying else self.parts_of(product)
        return product if parts is None else self.moved(parts)

    def moved(self, parts: _Parts) -> Expr:
        """The sums in integers, scaled after."""
        emit, product = self.builder_.emit, parts.product
        attrs = {**product.attrs, "out_dtype": "int32"}
        integers = [self.integers(operand) for operand in parts.operands]
        total = emit(Call(product.op, integers, attrs))
        left, right = parts.scales
        if product.op is IMAGE_CONVOLUTION and sizes_of(right):
            right = emit(op.reshape(right, [1, -1, 1, 1]))
        factor = emit(op.multiply(left, right))
        return op.multiply(emit(op.astype(total, "float32")), factor)

    def integers(self, part: Dequantized) -> Expr:
        emit, integers = self.builder_.emit, part.integers
        numbers = emit(op.astype(integers.numbers, "int16"))
        if integers.zero is not None:
            zero = emit(op.astype(integers.zero, "int16"))
            numbers = emit(op.subtract(numbers, zero))
        return numbers if part.axes is None else emit(op.permute_dims(numbers, part.axes))


class _Offers(_Finder):
    """Changes no product; collects what Winograd's algorithm offers for each that could move."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.offers: dict[int, list[Offer]] = {}
        """By the ``id`` of a convolution."""

    def visit_call_(self, call: Call) -> RelaxExpr:
        product = super().visit_call_(call)
        parts = self.parts_of(product)
        if parts is not None and parts.product.op is IMAGE_CONVOLUTION:
            self.offers[id(call)] = self.offers_of(parts)
        return product

    def offers_of(self, parts: _Parts) -> list[Offer]:
        """The forms of a convolution that take fewer cycles than integers."""
        sizes = geometry_of(parts.product)
        blocks = None if sizes is None else blocks_of(sizes)
        if sizes is None or blocks is None or min(blocks) == 1:
            return []
        form, machine = form_of_sizes(sizes, blocks, {}), self.machine
        if form is None:
            return []
        weights = known(parts.operands[1].integers.numbers, self.lookup_binding)
        is_exact = multiplies_exactly(machine, parts.product, weights)
        integers = direct_cycles(form, machine, *(_BYTE_PAIRS if is_exact else _WORD_PAIRS))
        forms = [form_faster_than(integers, form, machine, (tile,)) for tile in TILES]
        return [
            Offer(faster, integers - cycles(faster, machine), growth(faster))
            for faster in forms
            if faster is not None
        ]


def _staying(func: Function, machine: Machine) -> Container[int]:
    """The ``id`` of each convolution of a function that Winograd's algorithm shall compute."""
    if machine.multiplies_bytes:
        return ()
    collector = _Offers(machine)
    collector.visit_expr(func)
    constants = {id(item): item.data._array.nbytes for item in collect(func, Constant)}
    limit = growth_limit(sum(constants.values()), collector.offers.values())
    return affordable(collector.offers, limit)


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


def _is_short(call: Call, parts: Sequence[Dequantized]) -> bool:
    """Whether no sum overflows int32 even if all operands have their largest values."""
    sizes = sizes_of(call.args[0]) if call.op is _MATMUL else sizes_of(call.args[1])
    steps = (sizes or [None])[-1:] if call.op is _MATMUL else (sizes or [None])[1:]
    if any(size is None for size in steps):
        return False
    return (
        math.prod([*[step or 0 for step in steps], *[part.integers.reach for part in parts]])
        <= _LARGEST
    )


def dequantize_after_product(func: Function) -> Function:
    """The function that sums products of dequantized bytes in int32 and scales the sums."""
    target = Target.current(allow_none=True)
    machine = machine_of(target)
    if not machine.dot_products:
        return func
    return _Mover(_staying(func, machine)).visit_expr(func)


DequantizeAfterProduct = define_operator_pass("DequantizeAfterProduct", dequantize_after_product)
