"""VectorizeLoop: a loop of kind ``vectorized`` becomes vector expressions.

``for i in T.vectorized(4): B[i] = A[i] + 1.0`` becomes ``B[0:4] = A[0:4] + T.Broadcast(1.0, 4)``.
An ``if_then_else`` whose condition differs by lane is a ``T.Select`` if both values may be read in
any case. In a loop with the annotation ``MASKED_LANES`` it also becomes one if its condition
depends on nothing but lanes: its loads then have the condition as their predicate. There a store of
elements side by side may stand behind an ``if``, as in the last part of a row: ``if v < n: B[v] =
A[v]`` becomes ``B[0:4] = A[0:4]``, both with the predicate ``T.Ramp(0, 1, 4) < T.Broadcast(n, 4)``.
A loop whose body has no vector form (another branch that differs by lane, a call without a vector
form, an inner loop whose extent depends on the lane) stays, serial.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.arith.data import has_data
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.ir.node import Array
from weft.ir.op import Op
from weft.ir.transform import PassContext
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import (
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    Let,
    Mul,
    Not,
    Ramp,
    Select,
    Shuffle,
    Sub,
    Var,
)
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import BINARY_FLOAT, UNARY_FLOAT, CallEffectKind, effect_of
from weft.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
    stmt_list,
)
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

LANE_WISE = frozenset(
    [f"tir.{name}" for name in [*UNARY_FLOAT, *BINARY_FLOAT, "fabs", "pow", "fma", "popcount",
     "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right",
     "isnan", "isinf", "isfinite", "likely", "uncontracted", "scaleb",
     "dot_four_bytes"]]
)  # fmt: skip


MASKED_LANES: Final = "tir.masked_lanes"
"""The annotation of a vectorized loop for a processor whose loads leave lanes out at no cost."""
MAX_LANES: Final = 1024
"""A longer loop stays serial and LLVM chooses the width: one huge vector takes it far more time."""


class NotVectorizable(Exception):  # noqa: N818 - a signal within this module, not an error
    """The statement at hand has no vector form."""


class Vectorizer(StmtMutator):
    """Replaces one loop variable by a ramp; a scalar beside a vector is broadcast.

    ``analyzer`` knows the ranges of variables; without it no load is proved to be inside of its
    buffer. ``unrolled`` are the variables of loops that will be unrolled, so that conditions on
    them are constant; None: no lanes are masked.
    """

    def __init__(
        self,
        var: Var,
        start: PrimExpr,
        lanes: int,
        analyzer: Analyzer | None = None,
        unrolled: Collection[Var] | None = None,
    ) -> None:
        super().__init__()
        self.lanes, self.analyzer, self.unrolled = lanes, analyzer, unrolled
        ramp = Ramp(start, IntImm(start.dtype, 1), lanes)
        self.values: dict[int, PrimExpr] = {id(var): ramp}

    def visit_Var(self, var: Var) -> PrimExpr:
        return self.values.get(id(var), var)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def wide(self, value: PrimExpr) -> PrimExpr:
        """The value as a vector of all lanes; a scalar is broadcast."""
        lanes = value.dtype.lanes
        if lanes == self.lanes:
            return value
        if lanes != 1 or value.dtype.is_scalable:
            raise NotVectorizable
        return Broadcast(value, self.lanes)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> PrimExpr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        ramp = _ramp_arithmetic(type(expr), a, b)
        if ramp is not None:
            return ramp
        if a.dtype.lanes == 1 and b.dtype.lanes == 1:
            return expr.with_(a=a, b=b)
        return type(expr)(self.wide(a), self.wide(b))

    def visit_Not(self, expr: Not) -> PrimExpr:
        return Not(self.visit(expr.a))

    def visit_Cast(self, expr: Cast) -> PrimExpr:
        value = self.visit(expr.value)
        if value is expr.value:
            return expr
        if (
            isinstance(value, Ramp)
            and expr.dtype.is_integral
            and expr.dtype.bits >= (value.dtype.bits)
        ):
            return Ramp(
                op.cast(expr.dtype, value.base), op.cast(expr.dtype, value.stride), value.lanes
            )
        return Cast(expr.dtype.with_lanes(value.dtype.lanes), value)

    def visit_Select(self, expr: Select) -> PrimExpr:
        parts = [self.visit(x) for x in (expr.condition, expr.true_value, expr.false_value)]
        if all(part.dtype.lanes == 1 for part in parts):
            return Select(*parts)
        return Select(*[self.wide(part) for part in parts])

    def visit_Ramp(self, expr: Ramp) -> PrimExpr:
        if self.visit(expr.base) is not expr.base or self.visit(expr.stride) is not expr.stride:
            raise NotVectorizable
        return expr

    def visit_Broadcast(self, expr: Broadcast) -> PrimExpr:
        if self.visit(expr.value) is not expr.value:
            raise NotVectorizable
        return expr

    def visit_Shuffle(self, expr: Shuffle) -> PrimExpr:
        if self.visit(expr.vectors) is not expr.vectors:
            raise NotVectorizable
        return expr

    def visit_Let(self, let: Let | LetStmt) -> PrimExpr | Stmt:
        value = self.visit(let.value)
        if value.dtype.lanes == 1:
            return let.with_(value=value, body=self.visit(let.body))
        var = Var(let.var.name, value.dtype)
        self.values[id(let.var)] = var
        return let.with_(var=var, value=value, body=self.visit(let.body))

    visit_LetStmt = visit_Let

    def visit_Call(self, call: Call) -> PrimExpr:
        args = self.visit(call.args)
        if args is call.args:
            if effect_of(call) >= CallEffectKind.UpdateState:
                raise NotVectorizable
            return call
        name = _name(call)
        if name == "tir.if_then_else":
            return self.choice(call, args)
        if name == "tir.reinterpret":
            return Call(call.dtype.with_lanes(self.lanes), call.op, [self.wide(args[0])])
        if name not in LANE_WISE:
            raise NotVectorizable
        return Call(call.dtype.with_lanes(self.lanes), call.op, [self.wide(a) for a in args])

    def choice(self, call: Call, args: Array[PrimExpr]) -> PrimExpr:
        """``if_then_else``: kept where the condition is the same for all lanes."""
        if args[0].dtype.lanes != 1:
            flags = self.wide(args[0])
            arms = zip(call.args[1:], args[1:], (flags, Not(flags)), strict=True)
            chosen, other = [self.arm(*arm) for arm in arms]
            if isinstance(chosen, BufferLoad) and chosen.predicate is flags and _is_zero(other):
                return chosen  # a masked load gives zero, which is the other arm
            return Select(flags, chosen, other)
        dtype = call.dtype.with_lanes(self.lanes)
        return Call(dtype, call.op, [args[0], self.wide(args[1]), self.wide(args[2])])

    def arm(self, arm: PrimExpr, wide: PrimExpr, flags: PrimExpr) -> PrimExpr:
        """One arm of a choice; loads that are safe only under the condition get it as predicate."""
        harmful = [part for part in collect(arm, (BufferLoad, Call)) if not self.is_harmless(part)]
        if not harmful:
            return self.wide(wide)
        if self.unrolled is None or not set(collect(flags, Var)) <= set(self.unrolled):
            raise NotVectorizable
        return self.masked(harmful, wide, flags)

    def masked(self, harmful: Sequence[PrimExpr], wide: PrimExpr, flags: PrimExpr) -> PrimExpr:
        """A value whose loads have ``flags`` as their predicate, if any is ``harmful`` without."""
        if any(isinstance(part, Call) for part in harmful) or has_data(flags):
            raise NotVectorizable
        if any(self.visit(part).dtype.lanes == 1 for part in harmful):
            raise NotVectorizable  # a load for all lanes, which has no predicate
        return self.wide(_Masked(flags).visit(wide) if harmful else wide)

    def is_harmless(self, part: PrimExpr) -> bool:
        """Whether it may be computed in every lane: no load, or a load proved to be inside."""
        if not isinstance(part, BufferLoad):
            return isinstance(part, Call) and _name(part) in LANE_WISE
        return (
            self.analyzer is not None
            and part.predicate is None
            and all(
                self.analyzer.can_prove(op.logical_and(index >= 0, index < size))
                for index, size in zip(part.indices, part.buffer.shape, strict=True)
            )
        )

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        indices = self.visit(load.indices)
        if indices is load.indices and load.predicate is None:
            return load
        predicate = None if load.predicate is None else self.wide(self.visit(load.predicate))
        return BufferLoad(load.buffer, self.index(indices), predicate)

    def index(self, indices: Array[PrimExpr]) -> list[PrimExpr]:
        """Indices with at most the last one a vector."""
        if any(index.dtype.lanes != 1 for index in indices[:-1]):
            raise NotVectorizable
        return list(indices)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices, value = self.index(self.visit(store.indices)), self.visit(store.value)
        predicate = None if store.predicate is None else self.visit(store.predicate)
        wide_index = bool(indices) and indices[-1].dtype.lanes != 1
        if not wide_index:
            if value.dtype.lanes != store.value.dtype.lanes or value is not store.value:
                raise NotVectorizable
            return store
        if predicate is not None:
            predicate = self.wide(predicate)
        return BufferStore(store.buffer, self.wide(value), indices, predicate, span=store.span)

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        if condition.dtype.lanes != 1:
            return self.masked_store(stmt, condition)
        other = None if stmt.else_case is None else self.visit(stmt.else_case)
        return IfThenElse(condition, self.visit(stmt.then_case), other, span=stmt.span)

    def masked_store(self, stmt: IfThenElse, flags: PrimExpr) -> Stmt:
        """A store under a condition that differs by lane, the predicate of it and of its loads."""
        store = stmt.then_case
        if self.unrolled is None or stmt.else_case is not None:
            raise NotVectorizable
        if not isinstance(store, BufferStore) or store.predicate is not None:
            raise NotVectorizable
        indices = self.index(self.visit(store.indices))
        if not isinstance(indices[-1], Ramp) or not is_const_int(indices[-1].stride, 1):
            raise NotVectorizable
        parts = collect(store.value, (BufferLoad, Call))
        harmful = [part for part in parts if not self.is_harmless(part)]
        value = self.masked(harmful, self.visit(store.value), flags)
        return BufferStore(store.buffer, value, indices, self.wide(flags), span=store.span)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        if low.dtype.lanes != 1 or extent.dtype.lanes != 1:
            raise NotVectorizable
        return For(
            loop.loop_var,
            low,
            extent,
            loop.kind,
            self.visit(loop.body),
            loop.thread_binding,
            loop.annotations,
            span=loop.span,
        )

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        value = self.visit(stmt.value)
        if value is not stmt.value:
            raise NotVectorizable
        return stmt

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        raise NotVectorizable

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Stmt:
        return stmt.with_(body=self.visit(stmt.body))

    def visit_While(self, stmt: While) -> Stmt:
        raise NotVectorizable

    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        raise NotVectorizable

    def visit_AttrStmt(self, stmt: AttrStmt) -> Stmt:
        return stmt.with_(body=self.visit(stmt.body))


def _name(call: Call) -> str:
    return call.op.name if isinstance(call.op, Op) else ""


def _is_zero(value: PrimExpr) -> bool:
    """Whether a value is 0 in each lane, and no -0.0 (all its bits are 0)."""
    scalar = value.value if isinstance(value, Broadcast) else value
    if isinstance(scalar, FloatImm):
        return scalar.value == 0 and math.copysign(1, scalar.value) > 0
    return op.is_const_int(scalar, 0)


def _ramp_arithmetic(kind: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """ramp + scalar, scalar + ramp, ramp - scalar and ramp * scalar stay ramps."""
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        if kind.__name__ == "Add":
            return Ramp(op.add(a.base, b), a.stride, a.lanes)
        if kind is Sub:
            return Ramp(op.subtract(a.base, b), a.stride, a.lanes)
        if kind is Mul:
            return Ramp(op.multiply(a.base, b), op.multiply(a.stride, b), a.lanes)
    if isinstance(b, Ramp) and a.dtype.lanes == 1:
        if kind.__name__ == "Add":
            return Ramp(op.add(a, b.base), b.stride, b.lanes)
        if kind is Mul:
            return Ramp(op.multiply(a, b.base), op.multiply(a, b.stride), b.lanes)
    return None


class _Masked(Mutator):
    """Adds a predicate to loads of lanes, which then read only those for which it is true."""

    def __init__(self, flags: PrimExpr) -> None:
        super().__init__()
        self.flags = flags

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        if load.dtype.lanes == 1:
            return load
        is_vector = load.dtype.lanes == self.flags.dtype.lanes
        if not is_vector or load.buffer.dtype.lanes != 1 or load.predicate is not None:
            raise NotVectorizable
        return BufferLoad(load.buffer, self.visit(load.indices), self.flags)


class _Loops(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.unrolled: set[Var] = set()

    def visit_For(self, loop: For) -> Stmt:
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        if loop.kind is ForKind.UNROLLED:
            self.unrolled.add(loop.loop_var)
        loop = self.visit_default(loop)
        if loop.kind != ForKind.VECTORIZED:
            return loop
        serial = loop.with_(kind=ForKind.SERIAL)
        if not isinstance(loop.extent, IntImm):
            return serial
        if not 1 < loop.extent.value <= MAX_LANES:
            return serial
        unrolled = self.unrolled if MASKED_LANES in loop.annotations else None
        return vectorized(serial, loop.extent.value, self.analyzer, unrolled)


def has_masked_form(loop: For, analyzer: Analyzer) -> bool:
    """Whether a vectorized loop has the annotation ``MASKED_LANES`` and a form with masks."""
    if MASKED_LANES not in loop.annotations or not isinstance(loop.extent, IntImm):
        return False
    return has_vector_form(loop, loop.extent.value, analyzer, ())


def has_vector_form(
    loop: For, lanes: int, analyzer: Analyzer, unrolled: Collection[Var] | None = None
) -> bool:
    """Whether ``lanes`` iterations of a loop can be computed at once (see ``vectorized``)."""
    try:
        for part in stmt_list(loop.body):
            Vectorizer(loop.loop_var, loop.min, lanes, analyzer, unrolled).visit(part)
    except NotVectorizable:
        return False
    return True


def vectorized(
    loop: For,
    lanes: int,
    analyzer: Analyzer | None = None,
    unrolled: Collection[Var] | None = None,
) -> Stmt:
    """The vector form of a loop.

    A loop over a sequence is not divided into vector and serial parts, which could change the order
    of accesses: one statement without a vector form keeps the whole loop serial.
    """
    try:
        parts = [
            Vectorizer(loop.loop_var, loop.min, lanes, analyzer, unrolled).visit(part)
            for part in stmt_list(loop.body)
        ]
    except NotVectorizable:
        return loop
    return seq(*parts)


def vectorize_loop(func: PrimFunc, enable_vectorize: bool = True) -> PrimFunc:
    """The function with its vectorized loops in vector form.

    Disabled here or by the option ``tir.disable_vectorize``, they become serial loops.
    """
    disabled = PassContext.current().config.get("tir.disable_vectorize", False)
    return rewrite_body(func, _Loops() if enable_vectorize and not disabled else _Serial())


class _Serial(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        loop = self.visit_default(loop)
        return loop.with_(kind=ForKind.SERIAL) if loop.kind == ForKind.VECTORIZED else loop


VectorizeLoop = define_pass("VectorizeLoop", vectorize_loop)
