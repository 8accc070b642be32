"""FlattenVectorAccess: vectors that cross rows of a buffer become runs of its memory.

Loops that were fused run several axes of a buffer. In a loop that becomes vectors,
``x[(i * 16 + j) // 56, (i * 16 + j) % 56]`` of a buffer of rows of 56 becomes the element
``i * 16 + j`` of the same memory without rows, which a vector can load. Runs before Simplify, which
would take the quotient and the remainder apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map.constraint import conjuncts
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER, VECTOR_REDUCTION
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import LT, FloorDiv, FloorMod, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body
from weft.tir.transform.wide_index import widened


class _Flatten(StmtMutator):
    """Rewrites accesses below loops that become vectors; ``lanes`` are their variables."""

    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.lanes: tuple[Var, ...] = ()
        self.limits: list[tuple[PrimExpr, PrimExpr]] = []
        """What branches around say: an expression, and a number that it is below."""
        self.rows: dict[Buffer, Buffer] = {}

    def visit_For(self, loop: For) -> Stmt:
        outer = self.lanes
        if _is_vector(loop):
            self.lanes = (*outer, loop.loop_var)
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        flattened: Stmt = self.visit_default(loop)
        self.lanes = outer
        return flattened

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        before = len(self.limits)
        self.limits += [
            (part.a, part.b) for part in conjuncts(stmt.condition) if isinstance(part, LT)
        ]
        then_case = self.visit(stmt.then_case)
        del self.limits[before:]
        other = None if stmt.else_case is None else self.visit(stmt.else_case)
        return stmt.with_(
            condition=self.visit(stmt.condition), then_case=then_case, else_case=other
        )

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        inner: BufferLoad = self.visit_default(load)
        flat = self.flat(inner.buffer, inner.indices)
        return inner if flat is None else inner.with_(buffer=flat[0], indices=[flat[1]])

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        inner: BufferStore = self.visit_default(store)
        flat = self.flat(inner.buffer, inner.indices)
        return inner if flat is None else inner.with_(buffer=flat[0], indices=[flat[1]])

    def flat(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[Buffer, PrimExpr] | None:
        """The memory as one row and the place there, if that has no quotients of the lane.

        None also where an index is not proved to be in its range: it must not be seen as the next
        row's.
        """
        if not self.lanes or buffer.strides or len(indices) < 2:
            return None
        if len({index.dtype for index in indices}) > 1:
            indices = [widened(index, self.analyzer) for index in indices]
        fused = _fused(indices, self.lanes)
        if fused is None:
            return None
        place: PrimExpr = op.const(0, fused.dtype)
        for index, size in zip(indices, buffer.shape, strict=True):
            place = op.add(op.multiply(place, size), index)
        whole = self._whole(fused)
        names = _Named(fused, whole)
        place = self.analyzer.simplify(names.visit(place))
        for index, size in zip(indices, buffer.shape, strict=True):
            named = names.visit(index)
            if not self.analyzer.can_prove(op.logical_and(named >= 0, named < size)):
                return None
        place = self.analyzer.simplify(substitute(place, {whole: fused}))
        if any(_uses(part, self.lanes) for part in collect(place, (FloorDiv, FloorMod))):
            return None
        return self._row(buffer), place

    def _whole(self, fused: PrimExpr) -> Var:
        """A variable that stands for ``fused``, of its range.

        Quotients and remainders are simplified with it in the place of ``fused``: else one of them
        may be simplified by what ``fused`` is made of, and match no other.
        """
        whole = Var("fused", fused.dtype)
        bound = self.analyzer.const_int_bound(fused)
        limits = [
            end.value for value, end in self.limits
            if isinstance(end, IntImm) and self._is(value, fused)
        ]  # fmt: skip
        end = min([bound.max_value + 1, *limits])
        if bound.min_value > bound.NEG_INF and bound.max_value < bound.POS_INF:
            self.analyzer.bind(whole, Range(bound.min_value, end), True)
        return whole

    def _is(self, value: PrimExpr, fused: PrimExpr) -> bool:
        if value.dtype != fused.dtype and fused.dtype == "int64":
            value = widened(value, self.analyzer)
        return expr_deep_equal(value, fused)

    def _row(self, buffer: Buffer) -> Buffer:
        if buffer not in self.rows:
            total: PrimExpr = op.const(1, "int64")
            for size in buffer.shape:
                total = op.multiply(total, op.cast("int64", size))
            self.rows[buffer] = buffer.with_(shape=[total], axis_separators=())
        return self.rows[buffer]


def _fused(indices: Sequence[PrimExpr], lanes: Sequence[Var]) -> PrimExpr | None:
    """What the quotients and remainders of lanes are all taken of; None if not of one."""
    roots: list[PrimExpr] = []
    for index in indices:
        for part in collect(index, (FloorDiv, FloorMod)):
            inner = collect(part.a, (FloorDiv, FloorMod))
            if _uses(part.a, lanes) and not any(_uses(nested, lanes) for nested in inner):
                roots.append(part.a)
    same = all(expr_deep_equal(root, roots[0]) for root in roots)
    return roots[0] if roots and same else None


def _uses(expr: PrimExpr, variables: Sequence[Var]) -> bool:
    return any(var in collect(expr, Var) for var in variables)


def _is_vector(loop: For) -> bool:
    """Whether what the loop reads or stores becomes vectors."""
    marks = (VECTOR_REDUCTION, ROWS_TOGETHER, TRANSPOSE)
    return loop.kind is ForKind.VECTORIZED or any(mark in loop.annotations for mark in marks)


class _Named(Mutator):
    """Puts a variable in the place of an expression."""

    def __init__(self, expr: PrimExpr, var: Var) -> None:
        super().__init__()
        self.expr, self.var = expr, var

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The variable for the expression, else what is inside."""
        if expr_deep_equal(expr, self.expr):
            return self.var
        inner: PrimExpr = self.visit_default(expr)
        return inner


def flatten_vector_access(func: PrimFunc) -> PrimFunc:
    """The function with its vectors across rows as runs of memory."""
    vectors = [loop for loop in collect(func.body, For) if _is_vector(loop)]
    return rewrite_body(func, _Flatten()) if vectors else func


def FlattenVectorAccess() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.FlattenVectorAccess``."""
    return make_pass("FlattenVectorAccess", flatten_vector_access)
