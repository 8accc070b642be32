"""What a PrimFunc needs: bytes allocated by scope, and floating-point operations."""

from __future__ import annotations

from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.support.errors import IRTypeError, IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.expr import BinaryExpr
from weft.tir.function import PrimFunc

_FREE_CALLS: Final = frozenset({"tir.likely", "tir.assume", "tir.if_then_else", "tir.reinterpret"})


class _Bytes(Visitor):
    """Sums allocations on the way down; keeps the largest sum of each scope."""

    def __init__(self) -> None:
        self.current: dict[str, int] = {}
        self.largest: dict[str, int] = {}

    def take(self, scope: str, amount: int) -> None:
        self.current[scope] = self.current.get(scope, 0) + amount
        self.largest[scope] = max(self.largest.get(scope, 0), self.current[scope])

    def visit_Allocate(self, node: Any) -> None:
        amount = _size(node.extents, node.dtype.itemsize)
        scope = getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global"
        self.take(scope, amount)
        self.visit(node.body)
        self.current[scope] -= amount

    visit_AllocateConst = visit_Allocate

    def visit_Block(self, node: Any) -> None:
        taken = [
            (buffer.scope(), _size(buffer.shape, buffer.dtype.itemsize))
            for buffer in node.alloc_buffers
        ]
        for scope, amount in taken:
            self.take(scope, amount)
        self.visit(node.body)
        for scope, amount in taken:
            self.current[scope] -= amount

    def visit_PrimExpr(self, node: Any) -> None:
        pass


def _size(extents: Any, itemsize: int) -> int:
    """Bytes of an allocation; symbolic ones count 0, as in TVM."""
    total = itemsize
    for extent in extents:
        if not isinstance(extent, IntImm):
            return 0
        total *= extent.value
    return total


@deep_recursion
def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """Function name -> storage scope -> the most bytes allocated at one time."""
    if isinstance(func_or_mod, IRModule):
        functions = {var.name_hint: func for var, func in func_or_mod.functions.items()}
    else:
        functions = {"main": func_or_mod}
    result = {}
    for name, func in functions.items():
        if isinstance(func, PrimFunc):
            counter = _Bytes()
            counter.visit(func.body)
            result[name] = counter.largest
    return result


class _Flops(Visitor):
    """Counts arithmetic on floats (and on integers that are no index), times the loops around."""

    def __init__(self) -> None:
        self.times = 1.0
        self.total = 0.0
        self.analyzer = Analyzer()

    def add(self, expr: PrimExpr) -> None:
        self.total += self.times * expr.dtype.lanes

    def visit_For(self, node: Any) -> None:
        extent = self.analyzer.const_int_bound(node.extent)
        if extent.max_value == extent.POS_INF or not (
            isinstance(node.extent, IntImm) or extent.max_value < 1 << 31
        ):
            raise IRValueError(
                f"estimate_tir_flops: the extent of loop {node.loop_var.name} is not bounded by a "
                "constant; specialise the function first"
            )
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent), True)
        outer, self.times = self.times, self.times * max(extent.max_value, 0)
        self.visit(node.body)
        self.times = outer

    def visit_IfThenElse(self, node: Any) -> None:
        self.visit(node.condition)
        start = self.total
        self.visit(node.then_case)
        then_total, self.total = self.total, start
        if node.else_case is not None:
            self.visit(node.else_case)
        self.total = max(then_total, self.total)

    def visit_BlockRealize(self, node: Any) -> None:
        self.visit(node.block)  # bindings and predicates are indices

    def visit_Block(self, node: Any) -> None:
        if node.init is not None:
            outer, points = self.times, 1.0
            for axis in node.iter_vars:
                if axis.iter_type == axis.CommReduce and isinstance(axis.dom.extent, IntImm):
                    points *= max(axis.dom.extent.value, 1)
            self.times = outer / points
            self.visit(node.init)
            self.times = outer
        self.visit(node.body)

    def visit_BufferStore(self, node: Any) -> None:
        self.visit(node.value)

    def visit_BufferLoad(self, node: Any) -> None:
        pass

    def visit_Buffer(self, node: Any) -> None:
        pass

    def visit_PrimExpr(self, node: Any) -> None:
        if isinstance(node, IntImm | FloatImm):
            return
        if isinstance(node, BinaryExpr):
            self.add(node)
        self.visit_default(node)

    def visit_Select(self, node: Any) -> None:
        self.visit_default(node)

    def visit_Call(self, node: Any) -> None:
        if getattr(node.op, "name", "") not in _FREE_CALLS:
            self.add(node)
        self.visit(node.args)


@deep_recursion
def estimate_tir_flops(stmt_or_mod: Any) -> float:
    """Arithmetic operations of a statement, function or module; branches count the larger side."""
    if isinstance(stmt_or_mod, IRModule):
        return sum(
            [
                estimate_tir_flops(func)
                for func in stmt_or_mod.functions.values()
                if isinstance(func, PrimFunc)
            ]
        )
    counter = _Flops()
    if isinstance(stmt_or_mod, PrimFunc):
        given = stmt_or_mod.attrs.get("estimated_flops")
        if given is not None:
            return float(given)
        counter.visit(stmt_or_mod.body)
    elif hasattr(stmt_or_mod, "CHILDREN"):
        counter.visit(stmt_or_mod)
    else:
        raise IRTypeError(
            f"estimate_tir_flops: expected a module, function or statement, got "
            f"{type(stmt_or_mod).__name__}"
        )
    return counter.total
