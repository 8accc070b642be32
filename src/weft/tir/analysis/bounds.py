"""Proofs about the bounds of every buffer access: inside, outside, or unknown.

The proofs use loops, block axes, conditions, assertions and ``T.assume``. An access is *outside*
only if it certainly runs with an index out of bounds: there is no condition around it, every loop
around it has at least one iteration, and the index reaches its extreme value. Code generation
checks the unknown accesses at run time, and refuses those outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.canonical_simplify import as_sum
from weft.arith.conjunction import conjuncts
from weft.arith.data import has_data
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.module import IRModule
from weft.support.dtype import DataType
from weft.support.errors import IRIndexError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import GE, LT, And, Broadcast, Call, Cast, Or, Ramp, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.stmt import (
    AssertStmt,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from weft.tir.transform.prim_func_pass import define_pass

_INT64: Final = DataType("int64")
_MAX_CONDITIONS: Final = 6
"""The most nested conditions inside one expression that the proofs use."""


class AccessStatus(Enum):
    """What is known of an access."""

    PROVED = "proved"
    UNKNOWN = "unknown"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class AccessBound:
    """One index of one access: ``buffer`` at dimension ``axis``.

    ``low`` and ``high`` are the constant bounds of the index (None without); ``from_data``
    says whether the index depends on buffer elements or calls.
    """

    node: BufferLoad | BufferStore
    buffer: Buffer
    axis: int
    index: PrimExpr
    extent: PrimExpr
    status: AccessStatus
    low: int | None
    high: int | None
    from_data: bool
    block: str | None

    def message(self) -> str:
        """The error message, with the numbers."""
        place = f", in block {self.block}" if self.block else ""
        extent = self.extent.value if isinstance(self.extent, IntImm) else str(self.extent)
        index = f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"
        return (
            f"index {index} is out of bounds for buffer {self.buffer.name}, whose axis "
            f"{self.axis} has extent {extent}{place}"
        )


class _BoundsVisitor(Visitor):
    """Walks a function under an Analyzer that knows what holds at each access."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.found: list[AccessBound] = []
        self.certain = True
        self.blocks: list[str] = []
        self.conditions: tuple[PrimExpr, ...] = ()

    @contextmanager
    def under(self, condition: PrimExpr) -> Iterator[None]:
        """A scope in which ``condition`` holds; it may not run at all."""
        certain, self.certain = self.certain, False
        with self.analyzer.constraint_scope(condition):
            yield
        self.certain = certain

    @contextmanager
    def within(self, condition: PrimExpr) -> Iterator[None]:
        """As ``under``, for a condition inside of an expression.

        A shared subexpression is visited once for each combination of conditions above it. To limit
        that, conditions that depend on data, and those nested too deep, are not used.
        """
        outer, certain = self.conditions, self.certain
        with ExitStack() as stack:
            tells = any(not has_data(part) for part in conjuncts(condition))
            if tells and len(outer) < _MAX_CONDITIONS:
                self.conditions = (*outer, condition)
                stack.enter_context(self.under(condition))
            self.certain = False
            stack.enter_context(self.apart((False, *self.conditions)))
            yield
        self.conditions, self.certain = outer, certain

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.analyzer.bind(node.loop_var, node.domain, True)
        certain = self.certain
        extent = self.analyzer.simplify(node.extent)
        if not (isinstance(extent, IntImm) and extent.value > 0):
            self.certain = False
        self.visit(node.body)
        self.certain = certain

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        """Bind axes to their values; the domains that the block declares are not trusted."""
        block = node.block
        self.visit(node.iter_values)
        for axis, value in zip(block.iter_vars, node.iter_values, strict=True):
            self.analyzer.bind(axis.var, value, True)
        self.blocks.append(block.name_hint)
        predicate = self.analyzer.simplify(node.predicate)
        certain = self.certain
        with ExitStack() as stack:
            if not (isinstance(predicate, IntImm) and predicate.value):
                stack.enter_context(self.under(predicate))
            if block.init is not None:
                self.visit(block.init)
            self.visit(block.body)
        self.certain = certain
        self.blocks.pop()

    def visit_SeqStmt(self, node: SeqStmt) -> None:
        """What ``T.assume`` states holds for the statements after it."""
        certain = self.certain
        with ExitStack() as stack:
            for statement in node.seq:
                self.visit(statement)
                assumed = _assumption(statement)
                if assumed is not None:
                    stack.enter_context(self.analyzer.constraint_scope(assumed))
                self.certain = self.certain and not _may_stop(statement)
        self.certain = certain

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        with self.under(node.condition):
            self.visit(node.then_case)
        if node.else_case is not None:
            with self.under(fold.not_(node.condition)):
                self.visit(node.else_case)

    def visit_While(self, node: While) -> None:
        certain, self.certain = self.certain, False
        self.visit(node.condition)
        self.visit(node.body)
        self.certain = certain

    def visit_AssertStmt(self, node: AssertStmt) -> None:
        self.visit(node.condition)
        with self.under(node.condition):
            self.visit(node.body)

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        if node.var.dtype.is_integral:
            self.analyzer.bind(node.var, node.value, True)
        self.visit(node.body)

    visit_Let = visit_LetStmt

    def visit_And(self, node: And) -> None:
        self.visit(node.a)
        with self.within(node.a):
            self.visit(node.b)

    def visit_Or(self, node: Or) -> None:
        self.visit(node.a)
        with self.within(fold.not_(node.a)):
            self.visit(node.b)

    def visit_Call(self, node: Call) -> None:
        if not is_call(node, "if_then_else"):
            self.visit(node.args)
            return
        condition, true_value, false_value = node.args
        self.visit(condition)
        with self.within(condition):
            self.visit(true_value)
        with self.within(fold.not_(condition)):
            self.visit(false_value)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.visit(node.indices)
        self.access(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.visit(node.value)
        self.visit(node.indices)
        self.access(node)

    def visit_Buffer(self, node: Buffer) -> None:
        pass

    def access(self, node: BufferLoad | BufferStore) -> None:
        """Record what is known of every index of an access."""
        certain = self.certain
        if node.predicate is not None:
            self.certain = False
        for axis, index in enumerate(node.indices):
            self.found.append(self.judge(node, axis, index))
        self.certain = certain

    def judge(self, node: BufferLoad | BufferStore, axis: int, index: PrimExpr) -> AccessBound:
        extent = node.buffer.shape[axis]
        simple = [self.analyzer.simplify(end) for end in _lane_ends(index)]
        bounds = [self.analyzer.const_int_bound(end) for end in simple]
        low, high = min([b.min_value for b in bounds]), max([b.max_value for b in bounds])
        status = AccessStatus.PROVED
        if not self.inside(simple, extent, low, high):
            outside = self.certain and self.surely_outside(simple, extent, low, high)
            status = AccessStatus.OUTSIDE if outside else AccessStatus.UNKNOWN
        bound = bounds[0]
        return AccessBound(
            node,
            node.buffer,
            axis,
            index,
            extent,
            status,
            None if low == bound.NEG_INF else low,
            None if high == bound.POS_INF else high,
            has_data(index),
            self.blocks[-1] if self.blocks else None,
        )

    def inside(self, ends: list[PrimExpr], extent: PrimExpr, low: int, high: int) -> bool:
        """Whether 0 <= index < extent is proved."""
        if isinstance(extent, IntImm) and low >= 0 and high < extent.value:
            return True
        for end in ends:
            if end.dtype.lanes != 1:
                return False
            index, limit = _same_width(end, extent)
            if not self.analyzer.can_prove(LT(index, limit)):
                return False
            if low < 0 and not self.analyzer.can_prove(GE(index, fold.const(index.dtype, 0))):
                return False
        return True

    def surely_outside(self, ends: list[PrimExpr], extent: PrimExpr, low: int, high: int) -> bool:
        """Whether the index certainly takes a value out of bounds: it reaches its extremes."""
        if not isinstance(extent, IntImm) or not all(self.reaches_ends(end) for end in ends):
            return False
        return low < 0 or high >= extent.value

    def reaches_ends(self, index: PrimExpr) -> bool:
        """Whether the index is linear in loop variables with constant ranges, each once."""
        if isinstance(index, IntImm):
            return True
        total = as_sum(self.analyzer.canonical_form(index))
        for split in total.splits:
            if not split.is_plain or not isinstance(split.index, Var):
                return False
            if not self.analyzer.has_constant_range(split.index):
                return False
        return True


def _may_stop(statement: Stmt) -> bool:
    """Whether what follows the statement may not be reached."""
    if isinstance(statement, BufferStore):
        return False
    if collect(statement, (AssertStmt, While)):
        return True
    stopping = (CallEffectKind.UpdateState, CallEffectKind.ControlJump)
    return any(effect_of(call) in stopping for call in collect(statement, Call))


def _assumption(statement: Stmt) -> PrimExpr | None:
    if isinstance(statement, Evaluate) and isinstance(statement.value, Call):
        call = statement.value
        if is_call(call, "assume"):
            return call.args[0]
    return None


def _lane_ends(index: PrimExpr) -> list[PrimExpr]:
    """The first and the last lane of an index, whose bounds are the bounds of all lanes."""
    if isinstance(index, Broadcast):
        return [index.value]
    if isinstance(index, Ramp) and isinstance(index.lanes, IntImm):
        span = fold.mul(index.stride, fold.const(index.stride.dtype, index.lanes.value - 1))
        return [index.base, fold.add(index.base, span)]
    return [index]


def _same_width(index: PrimExpr, extent: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    if index.dtype is extent.dtype:
        return index, extent
    if isinstance(extent, IntImm) and index.dtype.lanes == 1:
        try:
            return index, fold.const(index.dtype, extent.value)
        except fold.ConstantOverflow:
            return Cast(_INT64, index), fold.const(_INT64, extent.value)
    wide = [
        e if e.dtype is _INT64 else Cast(_INT64.with_lanes(e.dtype.lanes), e)
        for e in (index, extent)
    ]
    return wide[0], wide[1]


@deep_recursion
def access_bounds(func: PrimFunc) -> list[AccessBound]:
    """What is known of every index of every buffer access of a function, in order."""
    visitor = _BoundsVisitor()
    for buffer in func.buffer_map.values():
        for extent in buffer.shape:
            if isinstance(extent, Var):
                visitor.analyzer.bind_nonnegative(extent)
    visitor.visit(func.body)
    return visitor.found


def check_bounds(func: PrimFunc) -> list[AccessBound]:
    """The accesses to check at run time; an access proved outside is an IRIndexError."""
    bounds = access_bounds(func)
    for bound in bounds:
        if bound.status is AccessStatus.OUTSIDE:
            raise IRIndexError(bound.message())
    return [bound for bound in bounds if bound.status is AccessStatus.UNKNOWN]


def index_data_dependence(func: PrimFunc) -> list[AccessBound]:
    """The accesses whose index depends on data: gathers, scatters, table look-ups."""
    return [bound for bound in access_bounds(func) if bound.from_data]


def _within_bounds(func: PrimFunc) -> PrimFunc:
    """The function itself, if no access is proved to be out of bounds."""
    check_bounds(func)
    return func


OOBChecker = define_pass("OOBChecker", _within_bounds)


def has_unknown_bounds(mod: IRModule) -> bool:
    """Whether a PrimFunc of the module needs run-time checks."""
    return any(
        bound.status is AccessStatus.UNKNOWN
        for func in mod.functions.values()
        if isinstance(func, PrimFunc)
        for bound in access_bounds(func)
    )
