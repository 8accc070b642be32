"""Resources of a PrimFunc: allocated bytes by scope, and floating-point operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from weft.arith.analyzer import Analyzer
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.module import IRModule
from weft.support.errors import IRValueError, wrong_type
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import BinaryExpr, Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, Block, BlockRealize, BufferStore, For, IfThenElse

_FREE_CALLS: Final = frozenset({"tir.likely", "tir.assume", "tir.if_then_else", "tir.reinterpret"})


class _Bytes(Visitor):
    """Sums the allocations that are alive at a time; keeps the maximum for each scope."""

    def __init__(self) -> None:
        self.current: dict[str, int] = {}
        self.largest: dict[str, int] = {}

    def take(self, scope: str, amount: int) -> None:
        self.current[scope] = self.current.get(scope, 0) + amount
        self.largest[scope] = max(self.largest.get(scope, 0), self.current[scope])

    def visit_Allocate(self, node: Allocate) -> None:
        amount = _size(node.extents, node.dtype.itemsize)
        scope = getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global"
        self.take(scope, amount)
        self.visit(node.body)
        self.current[scope] -= amount

    visit_AllocateConst = visit_Allocate

    def visit_Block(self, node: Block) -> None:
        taken = [
            (buffer.scope(), _size(buffer.shape, buffer.dtype.itemsize))
            for buffer in node.alloc_buffers
        ]
        for scope, amount in taken:
            self.take(scope, amount)
        self.visit(node.body)
        for scope, amount in taken:
            self.current[scope] -= amount

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        pass


def _size(extents: Iterable[PrimExpr], itemsize: int) -> int:
    """The bytes of an allocation; 0 for a symbolic size, as in TVM."""
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


Count: TypeAlias = float | PrimExpr
"""A number of operations; an expression if it depends on symbols."""


def _number(value: Count) -> PrimExpr:
    """A count as an operand of an expression of int64."""
    if isinstance(value, PrimExpr):
        return op.cast("int64", value)
    return IntImm("int64", int(value))


def _plus(a: Count, b: Count) -> Count:
    if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
        return _number(a) + _number(b)
    return a + b


def _times(a: Count, b: Count) -> Count:
    if isinstance(a, PrimExpr) or isinstance(b, PrimExpr):
        return _number(a) * _number(b)
    return a * b


class _Flops(Visitor):
    """Counts arithmetic on floats (and on integers outside of indices), times the loops around.

    ``total`` is the count for one iteration of the current loop. A block with a predicate (the tail
    of a split loop) does not run in every iteration: it is counted once over the whole domain of
    its axes, in ``tails``. Both are expressions if a loop inside runs to one of ``symbols``.
    """

    def __init__(self, symbols: Iterable[Var] = ()) -> None:
        self.total: Count = 0.0
        self.tails: Count = 0.0
        self.analyzer = Analyzer()
        self.symbols = {id(var) for var in symbols}

    def add(self, expr: PrimExpr) -> None:
        self.total = _plus(self.total, expr.dtype.lanes)

    def visit_For(self, node: For) -> None:
        steps = self.steps(node.extent)
        if steps is None:
            raise IRValueError(
                f"estimate_tir_flops: the extent of loop {node.loop_var.name} is not bounded by a "
                "constant; specialise the function first"
            )
        self.analyzer.bind(node.loop_var, node.domain, True)
        outer, self.total = self.total, 0.0
        self.visit(node.body)
        self.total = _plus(outer, _times(steps, self.total))

    def steps(self, extent: PrimExpr) -> Count | None:
        """An upper bound of an extent; an expression over ``symbols``, None if it is unbounded."""
        symbols = collect(extent, Var)
        if symbols and all(id(var) in self.symbols for var in symbols):
            return extent
        bound = self.analyzer.const_int_bound(extent)
        unknown = bound.max_value == bound.POS_INF or bound.max_value >= 1 << 31
        return None if unknown and not isinstance(extent, IntImm) else max(bound.max_value, 0)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        start, self.total = self.total, 0.0
        self.visit(node.then_case)
        then_total, self.total = self.total, 0.0
        if node.else_case is not None:
            self.visit(node.else_case)
        totals = [then_total, self.total]
        is_plain = not any(isinstance(total, PrimExpr) for total in totals)
        self.total = _plus(start, max(totals) if is_plain else op.max(*map(_number, totals)))

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        """Count a block; its bindings and predicate are indices, which do not count."""
        (before, self.total), (apart, self.tails) = (self.total, 0.0), (self.tails, 0.0)
        self.visit(node.block)
        once = _plus(self.total, self.tails)
        points = None if isinstance(node.predicate, IntImm) else self.domain(node.block)
        if points is None:
            self.total, self.tails = _plus(before, once), apart
        else:
            self.total, self.tails = before, _plus(apart, _times(points, once))

    def domain(self, block: Block) -> Count | None:
        """The number of points of a block's axes; None if it is not known."""
        points: Count = 1
        for axis in block.iter_vars:
            assert axis.dom is not None
            steps = self.steps(axis.dom.extent)
            if steps is None:
                return None
            points = _times(points, steps)
        return points

    def visit_Block(self, node: Block) -> None:
        if node.init is not None:
            points = 1.0
            for axis in node.iter_vars:
                extent = None if axis.dom is None else axis.dom.extent
                if axis.iter_type == axis.CommReduce and isinstance(extent, IntImm):
                    points *= max(extent.value, 1)
            outer, self.total = self.total, 0.0
            self.visit(node.init)
            self.total = _plus(outer, _times(1 / points, self.total))
        self.visit(node.body)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.visit(node.value)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        pass

    def visit_Buffer(self, node: Buffer) -> None:
        pass

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        if isinstance(node, (IntImm, FloatImm)):
            return
        if isinstance(node, BinaryExpr):
            self.add(node)
        self.visit_default(node)

    def visit_Call(self, node: Call) -> None:
        name, args = getattr(node.op, "name", ""), node.args
        if name not in _FREE_CALLS:
            self.add(node)
        if name == "tir.if_then_else" and not collect(args[0], BufferLoad):
            args = args[1:]  # a test of indices, such as for padding, does not count
        self.visit(args)


@deep_recursion
def count_flops(func: PrimFunc, symbols: Iterable[Var]) -> float | PrimExpr:
    """As ``estimate_tir_flops``, but the result is an expression if loops run to ``symbols``."""
    counter = _Flops(symbols)
    counter.visit(func.body)
    total: float | PrimExpr = _plus(counter.total, counter.tails)
    return Analyzer().simplify(total) if isinstance(total, PrimExpr) else total


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
        raise wrong_type(
            "estimate_tir_flops: expected a module, function or statement", stmt_or_mod
        )
    total = _plus(counter.total, counter.tails)
    assert not isinstance(total, PrimExpr), "no symbols were given"
    return float(total)
