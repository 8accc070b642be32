"""UnfuseParallelLoops and FuseParallelLoops: a fused loop over symbolic axes is a nest meanwhile.

Schedules fuse the loops that threads share, and every index then takes the fused variable apart.
Before::

    for i in T.parallel(n * t):
        for k in range(t): A[i // t, i % t, k] = B[i // t, i % t, k] + T.float32(1)

Between the two passes::

    for i0 in T.parallel(n):
        for i1 in T.parallel(t):
            for k in range(t): A[i0, i1, k] = B[i0, i1, k] + T.float32(1)

After::

    for i in T.parallel(n * t):
        i0 = i // t
        i1 = i % t
        for k in range(t): A[i0, i1, k] = B[i0, i1, k] + T.float32(1)

Quotients by symbolic numbers are what takes the passes in between most of their time: of the
simplest facts about them (``i % t < t``) each has to be proved. Without them the indices are sums
of products. The divisions are done once an iteration, for the reason that ``name_quotients`` gives.

The quotients form a mixed radix system: each is made of neighbouring digits of ``i``, whose radices
are factors of the loop's extent. Loops whose variable is used in other ways stay fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map.integer import (
    add,
    const_like,
    factors,
    floordiv,
    floormod,
    mul,
    ordered_product,
    without,
)
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, Visitor, substitute
from weft.tir import op
from weft.tir.constant import is_const_int
from weft.tir.expr import FloorDiv, FloorMod, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import assume
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)
from weft.tir.transform.loop_partition import HINT
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

DIGIT: Final = "weft.digit"
"""The annotation of the loops of a nest that is to be fused again, but of its outermost one."""


class _Product(NamedTuple):
    """A product of a number and of symbols."""

    number: int
    symbols: list[PrimExpr]

    def times(self, other: _Product) -> _Product:
        return _Product(self.number * other.number, [*self.symbols, *other.symbols])

    def over(self, other: _Product) -> _Product | None:
        """The quotient; None if it is no such product."""
        rest = without(self.symbols, other.symbols)
        if rest is None or other.number == 0 or self.number % other.number:
            return None
        return _Product(self.number // other.number, rest)

    def is_as(self, other: _Product) -> bool:
        quotient = self.over(other)
        return quotient is not None and quotient.number == 1 and not quotient.symbols

    def expr(self, like: PrimExpr) -> PrimExpr:
        return ordered_product(const_like(like, self.number), *self.symbols)


def _product(expr: PrimExpr) -> _Product:
    return _Product(*factors(expr))


_ONE: Final = _Product(1, [])


class _Cuts(Visitor):
    """The units at which quotients cut a variable apart: those of ``i // 6 % 4`` are 6 and 24."""

    def __init__(self, var: Var) -> None:
        self.var = var
        self.units: list[_Product] = []

    def visit_FloorDiv(self, node: FloorDiv) -> None:
        """Note the unit of a quotient, and those inside of it."""
        self.visit_default(node)
        self.unit_of(node)

    def visit_FloorMod(self, node: FloorMod) -> None:
        """Note the unit above a remainder, and those inside of it."""
        self.visit_default(node)
        self.unit_of(node)

    def unit_of(self, node: PrimExpr) -> _Product | None:
        """The unit of the last digit of an expression; None if it is not made of digits."""
        if node is self.var:
            return _ONE
        if not isinstance(node, (FloorDiv, FloorMod)):
            return None
        inner = self.unit_of(node.a)
        if inner is None:
            return None
        cut = inner.times(_product(node.b))
        if not any(cut.is_as(known) for known in self.units):
            self.units.append(cut)
        return cut if isinstance(node, FloorDiv) else inner


def _chain(units: Sequence[_Product], extent: _Product) -> list[_Product] | None:
    """The radices between the units, the largest unit first; None if they are no such chain."""
    ordered = sorted(units, key=lambda unit: (len(unit.symbols), unit.number), reverse=True)
    radices = []
    above = extent
    for unit in [*ordered, _ONE]:
        radix = above.over(unit)
        if radix is None:
            return None
        if not radix.is_as(_ONE):
            radices.append(radix)
        above = unit
    return radices


class _Digits(NamedTuple):
    """Neighbouring digits, from ``begin`` on to before ``end``."""

    begin: int
    end: int


class _NotDigits(Exception):  # noqa: N818 - no error: the loop stays fused
    """Raised where the variable is used otherwise than by its digits."""


class _Replace(Mutator):
    """Puts the variables of digits in the places of what is made of them."""

    def __init__(self, var: Var, radices: Sequence[_Product], digits: Sequence[Var]) -> None:
        super().__init__()
        self.var, self.radices, self.digits = var, radices, digits
        self.units = [_ONE]
        for radix in reversed(radices):
            self.units.insert(0, self.units[0].times(radix))

    def visit_Var(self, node: Var) -> PrimExpr:
        """Raise for the variable itself."""
        if node is self.var:
            raise _NotDigits
        return node

    def visit_FloorDiv(self, node: FloorDiv) -> PrimExpr:
        """The digits of a quotient."""
        return self.replaced(node)

    def visit_FloorMod(self, node: FloorMod) -> PrimExpr:
        """The digits of a remainder."""
        return self.replaced(node)

    def replaced(self, node: FloorDiv | FloorMod) -> PrimExpr:
        digits = self.digits_of(node)
        if digits is None:
            return self.visit_default(node)
        if digits.begin == digits.end:
            return const_like(node, 0)
        number: PrimExpr = self.digits[digits.begin]
        for at in range(digits.begin + 1, digits.end):
            number = add(mul(number, self.radices[at].expr(self.var)), self.digits[at])
        return number

    def digits_of(self, node: PrimExpr) -> _Digits | None:
        """The digits that an expression is made of; None if it is made otherwise."""
        if node is self.var:
            return _Digits(0, len(self.digits))
        if not isinstance(node, (FloorDiv, FloorMod)):
            return None
        inner = self.digits_of(node.a)
        if inner is None:
            return None
        cut = self.units[inner.end].times(_product(node.b))
        places = [at for at, unit in enumerate(self.units) if unit.is_as(cut)]
        if not places or not inner.begin <= places[0] <= inner.end:
            return None
        at = places[0]
        return _Digits(inner.begin, at) if isinstance(node, FloorDiv) else _Digits(at, inner.end)


class _Unfuse(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        """Take a parallel loop apart; loops inside of it stay."""
        if loop.kind is not ForKind.PARALLEL or not _is_symbolic(loop):
            return self.visit_default(loop)
        cuts = _Cuts(loop.loop_var)
        cuts.visit(loop.body)
        radices = _chain(cuts.units, _product(loop.extent)) if cuts.units else None
        if radices is None or len(radices) < 2:
            return loop
        var = loop.loop_var
        digits = [Var(f"{var.name}_{at}", var.dtype) for at in range(len(radices))]
        try:
            body: Stmt = _Replace(var, radices, digits).visit(loop.body)
        except _NotDigits:
            return loop
        for at in reversed(range(len(radices))):
            body = For(
                digits[at],
                const_like(var, 0),
                radices[at].expr(loop.extent),
                ForKind.PARALLEL,
                body,
                None,
                {**loop.annotations, HINT: 0, **({DIGIT: 1} if at else {})},
                span=loop.span,
            )
        return body


def _is_symbolic(loop: For) -> bool:
    starts = is_const_int(loop.min, 0)
    return starts and not isinstance(loop.extent, IntImm) and loop.thread_binding is None


class _Fuse(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        """Fuse a parallel loop with the loops of digits inside of it."""
        if loop.kind is not ForKind.PARALLEL or loop.thread_binding is not None:
            return self.visit_default(loop)
        nest = _nest(loop)
        try:
            return loop if len(nest) < 2 else _fused(nest)
        except _NotDigits:
            return loop


_AROUND: Final = (LetStmt, IfThenElse, AttrStmt, Allocate, DeclBuffer)
"""What passes may put between two loops of a nest: it is as right inside of both."""


def _nest(loop: For) -> list[For]:
    """A loop and those of its digits, the first ones where there is a branch between them."""
    nest = [loop]
    stmt: object = loop.body
    while isinstance(stmt, (For, *_AROUND)):
        if isinstance(stmt, For):
            if DIGIT not in stmt.annotations:
                break
            nest.append(stmt)
        stmt = stmt.then_case if isinstance(stmt, IfThenElse) else stmt.body
    return nest


def _fused(nest: Sequence[For]) -> For:
    """One loop for those of a nest."""
    outer = nest[0]
    if not all(is_const_int(loop.min, 0) for loop in nest):
        raise _NotDigits
    known = [_inside(loop.loop_var, loop.extent) for loop in nest]
    body = seq(*known, _within(outer.body, nest[1:]))
    widest = max([loop.loop_var.dtype for loop in nest], key=lambda dtype: dtype.bits)
    fused = Var(outer.loop_var.name.removesuffix("_0"), widest)
    unit: PrimExpr = const_like(fused, 1)
    for at in reversed(range(len(nest))):
        loop = nest[at]
        digit = fused if at == len(nest) - 1 else floordiv(fused, unit)
        if at:
            digit = floormod(fused, mul(unit, loop.extent))
            digit = digit if at == len(nest) - 1 else floordiv(digit, unit)
        body = LetStmt(loop.loop_var, op.cast(loop.loop_var.dtype, digit), body)
        unit = mul(loop.extent, unit)
    return outer.with_(loop_var=fused, min=const_like(fused, 0), extent=unit, body=body)


def _inside(digit: Var, radix: PrimExpr) -> Stmt:
    """The promise that a digit is below its radix, which proofs do not see in its quotient."""
    return Evaluate(assume(op.logical_and(digit >= 0, digit < radix)))


def _within(stmt: Stmt, loops: Sequence[For]) -> Stmt:
    """A statement without the loops of these digits, whose variables are then defined around it."""
    if not loops:
        return stmt
    if isinstance(stmt, For):
        first = loops[0]
        if DIGIT not in stmt.annotations or not expr_deep_equal(stmt.extent, first.extent):
            raise _NotDigits
        body = _within(stmt.body, loops[1:])
        same = stmt.loop_var is first.loop_var
        return body if same else substitute(body, {stmt.loop_var: first.loop_var})
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_case is None else _within(stmt.else_case, loops)
        return stmt.with_(then_case=_within(stmt.then_case, loops), else_case=other)
    if isinstance(stmt, (LetStmt, AttrStmt, Allocate, DeclBuffer)):
        return stmt.with_(body=_within(stmt.body, loops))
    raise _NotDigits


def unfuse_parallel_loops(func: PrimFunc) -> PrimFunc:
    """The function with fused parallel loops as nests."""
    return rewrite_body(func, _Unfuse())


def fuse_parallel_loops(func: PrimFunc) -> PrimFunc:
    """The function with nests of parallel loops fused again."""
    return rewrite_body(func, _Fuse())


UnfuseParallelLoops = define_pass("UnfuseParallelLoops", unfuse_parallel_loops)
FuseParallelLoops = define_pass("FuseParallelLoops", fuse_parallel_loops)
