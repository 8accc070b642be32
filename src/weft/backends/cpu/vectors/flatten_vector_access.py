"""FlattenVectorAccess: an access by quotient and remainder of one number becomes a flat one.

A fused loop runs over several axes of a buffer. If it becomes vectors, an access such as
``x[(i * 16 + j) // 56, (i * 16 + j) % 56]``, to a buffer with rows of 56 elements, becomes
``x_flat[i * 16 + j]``, to the same memory without rows. That is a run of memory, which a vector can
load. Runs before Simplify, which would rewrite the quotient and the remainder each by itself.

So does an access to a buffer whose last axes have one element, such as ``w[k, 0]`` where ``k`` is a
lane: its last index, by which vectors are known, becomes ``k``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjuncts
from weft.arith.deep_equal import expr_deep_equal
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER, VECTOR_REDUCTION
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, collect, contains, mentions, substitute
from weft.ir.structural import structural_key
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import LT, FloorDiv, FloorMod, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.wide_index import widened


class _Flatten(StmtMutator):
    """Rewrites accesses inside of loops that become vectors; ``lanes`` are the loop variables."""

    def __init__(self, written: set[Var]) -> None:
        super().__init__()
        self.written = written
        self.analyzer = Analyzer()
        self.lanes: tuple[Var, ...] = ()
        self.limits: list[tuple[PrimExpr, PrimExpr]] = []
        """(a, b) for each condition ``a < b`` of the branches around."""
        self.rows: dict[Buffer, Buffer] = {}
        self.cut: dict[tuple[Buffer, int], Buffer] = {}
        self.known: dict[Hashable, tuple[Sequence[object], PrimExpr | None]] = {}
        """What ``_flat`` gave, with its arguments: loads and stores often find the same place."""

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
        inner = self.without_single_axes(inner)
        flat = self.flat(inner.buffer, inner.indices)
        return inner if flat is None else inner.with_(buffer=flat[0], indices=[flat[1]])

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        inner: BufferStore = self.visit_default(store)
        flat = self.flat(inner.buffer, inner.indices)
        return inner if flat is None else inner.with_(buffer=flat[0], indices=[flat[1]])

    def without_single_axes(self, load: BufferLoad) -> BufferLoad:
        """The load, without the axes of one element behind the last index that has lanes."""
        buffer, indices = load.buffer, load.indices
        count = len(indices)
        while (
            count > 1
            and is_const_int(indices[count - 1], 0)
            and is_const_int(buffer.shape[count - 1], 1)
        ):
            count -= 1
        is_there = count < len(indices) and mentions(indices[count - 1], *self.lanes)
        if not is_there or buffer.strides or buffer.axis_separators:
            return load
        if buffer.data in self.written:  # passes compare a sum's load with its store
            return load
        if (buffer, count) not in self.cut:
            self.cut[buffer, count] = buffer.with_(shape=buffer.shape[:count])
        return load.with_(buffer=self.cut[buffer, count], indices=indices[:count])

    def flat(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[Buffer, PrimExpr] | None:
        """The buffer without rows and the flat index, if that has no quotients of the lanes.

        None also if an index is not proved to be in its range: an access beyond the end of a row is
        an error, and must not become one to the next row. A first index without lanes needs no
        proof: if it alone is outside, so is the flat one. (One with lanes may be that of a panel
        that is cut off, which later passes look for.)
        """
        if not self.lanes or buffer.strides or len(indices) < 2:
            return None
        if not contains(indices, (FloorDiv, FloorMod)):
            return None
        limits = tuple([id(value) for value, _ in self.limits])
        arguments = buffer.shape, indices
        key = structural_key(arguments), self.lanes, limits
        if key not in self.known:
            self.known[key] = arguments, self._flat(*arguments)
        place = self.known[key][1]
        return None if place is None else (self._row(buffer), place)

    def _flat(self, shape: Sequence[PrimExpr], indices: Sequence[PrimExpr]) -> PrimExpr | None:
        """The flat index of ``flat``."""
        if len({index.dtype for index in indices}) > 1:
            indices = [widened(index, self.analyzer) for index in indices]
        fused = _fused(indices, self.lanes)
        if fused is None:
            return None
        place: PrimExpr = op.const(0, fused.dtype)
        for index, size in zip(indices, shape, strict=True):
            place = op.add(op.multiply(place, size), index)
        whole = self._whole(fused)
        names = _Named(fused, whole)
        place = self.analyzer.simplify(names.visit(place))
        is_first_apart = not mentions(indices[0], *self.lanes)
        for index, size in [*zip(indices, shape, strict=True)][is_first_apart:]:
            named = names.visit(index)
            if not self.analyzer.can_prove(op.logical_and(named >= 0, named < size)):
                return None
        place = self.analyzer.simplify(substitute(place, {whole: fused}))
        if mentions(collect(place, (FloorDiv, FloorMod)), *self.lanes):
            return None
        return place

    def _whole(self, fused: PrimExpr) -> Var:
        """A variable that stands for ``fused`` and has the same range.

        Quotients and remainders are simplified with this variable in them. With ``i * 16 + j`` in
        them, one may simplify further than the other, and they would no longer match.
        """
        whole = Var("fused", fused.dtype)
        bound = self.analyzer.const_int_bound(fused)
        limits = [
            end.value
            for value, end in self.limits
            if isinstance(end, IntImm) and self._is(value, fused)
        ]
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
    """The expression of which all quotients and remainders of lanes are taken; None if several."""
    roots: list[PrimExpr] = []
    for index in indices:
        for part in collect(index, (FloorDiv, FloorMod)):
            inner = collect(part.a, (FloorDiv, FloorMod))
            if mentions(part.a, *lanes) and not mentions(inner, *lanes):
                roots.append(part.a)
    same = all(expr_deep_equal(root, roots[0]) for root in roots)
    return roots[0] if roots and same else None


def _is_vector(loop: For) -> bool:
    """Whether the loop will become vectors."""
    marks = (VECTOR_REDUCTION, ROWS_TOGETHER, TRANSPOSE)
    return loop.kind is ForKind.VECTORIZED or any(mark in loop.annotations for mark in marks)


class _Named(Mutator):
    """Replaces an expression by a variable."""

    def __init__(self, expr: PrimExpr, var: Var) -> None:
        super().__init__()
        self.expr, self.var = expr, var

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """Replace ``expr``, or look inside of it."""
        if expr_deep_equal(expr, self.expr):
            return self.var
        return self.visit_default(expr)


def flatten_vector_access(func: PrimFunc) -> PrimFunc:
    """Flatten the accesses of a function's vector loops that cross rows."""
    vectors = [loop for loop in collect(func.body, For) if _is_vector(loop)]
    if not vectors:
        return func
    written = {store.buffer.data for store in collect(func.body, BufferStore)}
    return rewrite_body(func, _Flatten(written))


FlattenVectorAccess = define_pass("FlattenVectorAccess", flatten_vector_access)
