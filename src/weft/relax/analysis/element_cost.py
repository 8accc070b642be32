"""How expensive an element of a PrimFunc's result is, where fusion may compute it several times.

``x + exp(v)`` with x[512, 512] and v[512] in one kernel computes 262,144 powers, apart 512 of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import product, simplified
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import BinaryExpr, Call, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import BINARY_FLOAT, UNARY_FLOAT
from weft.tir.lowering.decompose_math import FLOAT32, FLOAT64
from weft.tir.stmt import BufferStore

SYMBOL: Final = 256
"""What a symbolic extent counts as: the side of an image, of whose features a sixteenth is left."""
VECTOR, CALLED, ARITHMETIC = 1.0, 12.0, 0.1
"""Nanoseconds of a function of float32 that is computed in vectors, of one that the C library
computes number by number, and of an arithmetic operation: orders of magnitude."""
_INSTRUCTIONS: Final = frozenset(
    "sqrt rsqrt floor ceil trunc round nearbyint copysign fabs".split()
)
_FUNCTIONS: Final = frozenset([*UNARY_FLOAT, *BINARY_FLOAT, "pow"]) - _INSTRUCTIONS


@deep_recursion
def element_cost(func: PrimFunc) -> float:
    """Nanoseconds for an element: of mathematical functions, and of long formulas."""
    called = [_cost_of(call) for call in collect(func.body, Call)]
    arithmetic = [node for node in collect(func.body, BinaryExpr) if node.dtype.is_float]
    return sum(called) + ARITHMETIC * len(arithmetic)


def _cost_of(call: Call) -> float:
    name = call.op.name.removeprefix("tir.") if isinstance(call.op, Op) else ""
    if name not in _FUNCTIONS or not call.dtype.is_float:
        return 0.0
    if call.dtype.bits == 64:
        return 2 * VECTOR if name in FLOAT64 else CALLED
    return VECTOR if name in FLOAT32 else CALLED


def reads_of_element(func: PrimFunc, buffers: Collection[Buffer]) -> int:
    """How many elements of buffers a kernel reads for an element of its result: a resize, four.

    Of the sides of a choice, such as the parts of a concatenation, the one that reads more counts.
    """
    values = [store.value for store in collect(func.body, BufferStore)]
    return max([len(_places(value, buffers)) for value in values], default=0)


def _places(value: PrimExpr, buffers: Collection[Buffer]) -> list[BufferLoad]:
    reads = _Reads(buffers)
    reads.visit(value)
    return reads.places


class _Reads(Visitor):
    """Collects the loads of an expression from buffers, those of the same element once."""

    def __init__(self, buffers: Collection[Buffer]) -> None:
        super().__init__()
        self.buffers = buffers
        self.places: list[BufferLoad] = []

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit_default(load)
        if load.buffer in self.buffers:
            self._add(load)

    def visit_Call(self, call: Call) -> None:
        if not is_call(call, "if_then_else"):
            self.visit_default(call)
            return
        test, *sides = call.args
        self.visit(test)
        for load in max([_places(side, self.buffers) for side in sides], key=len):
            self._add(load)

    def _add(self, load: BufferLoad) -> None:
        if not any(structural_equal(load, other) for other in self.places):
            self.places.append(load)


def element_count(info: StructInfo | None) -> int | None:
    """The number of elements of a tensor, about; None for what is none, or has no known extents."""
    dims = tensor_dims(info) if isinstance(info, TensorStructInfo) else None
    if dims is None:
        return None
    total: PrimExpr = product(dims)
    sizes: Mapping[Var, PrimExpr] = {var: IntImm(var.dtype, SYMBOL) for var in collect(total, Var)}
    count = simplified(substitute(total, sizes))
    return int(count.value) if isinstance(count, IntImm) else None


__all__ = ["element_cost", "element_count", "reads_of_element"]
