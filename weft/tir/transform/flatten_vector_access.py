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
from weft.ir.expr import PrimExpr, Range
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import BufferLoad, FloorDiv, FloorMod, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body
from weft.tir.transform.vector_reduction import VECTOR_REDUCTION


class _Flatten(StmtMutator):
    """Rewrites accesses below a loop that becomes vectors; ``lane`` is its variable."""

    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.lane: Var | None = None
        self.rows: dict[Buffer, Buffer] = {}

    def visit_For(self, loop: For) -> Stmt:
        outer = self.lane
        if loop.kind is ForKind.VECTORIZED or VECTOR_REDUCTION in loop.annotations:
            self.lane = loop.loop_var
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        made: Stmt = self.visit_default(loop)
        self.lane = outer
        return made

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        found: BufferLoad = self.visit_default(load)
        flat = self.flat(found.buffer, found.indices)
        return found if flat is None else found.with_(buffer=flat[0], indices=[flat[1]])

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        found: BufferStore = self.visit_default(store)
        flat = self.flat(found.buffer, found.indices)
        return found if flat is None else found.with_(buffer=flat[0], indices=[flat[1]])

    def flat(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[Buffer, PrimExpr] | None:
        """The memory as one row and the place there, if that has no quotients of the lane.

        None also where an index is not proved to be in its range: it must not be seen as the next
        row's.
        """
        lane = self.lane
        if lane is None or buffer.strides or len(indices) < 2:
            return None
        fused = _fused(indices, lane)
        if fused is None:
            return None
        place: PrimExpr = op.const(0, fused.dtype)
        for index, size in zip(indices, buffer.shape, strict=True):
            place = op.add(op.multiply(place, size), index)
        place = self._simplified(place, fused)
        if any(lane in collect(part, Var) for part in collect(place, (FloorDiv, FloorMod))):
            return None
        for index, size in zip(indices, buffer.shape, strict=True):
            if not self.analyzer.can_prove(op.logical_and(index >= 0, index < size)):
                return None
        return self._row(buffer), place

    def _simplified(self, place: PrimExpr, fused: PrimExpr) -> PrimExpr:
        """The place, its quotients and remainders taken of a variable that stands for ``fused``.

        Else one of them may be simplified by what ``fused`` is made of, and match no other.
        """
        whole = Var("fused", fused.dtype)
        bound = self.analyzer.const_int_bound(fused)
        if bound.min_value > bound.NEG_INF and bound.max_value < bound.POS_INF:
            self.analyzer.bind(whole, Range(bound.min_value, bound.max_value + 1), True)
        found = self.analyzer.simplify(_Named(fused, whole).visit(place))
        return self.analyzer.simplify(substitute(found, {whole: fused}))

    def _row(self, buffer: Buffer) -> Buffer:
        if buffer not in self.rows:
            total: PrimExpr = op.const(1, "int64")
            for size in buffer.shape:
                total = op.multiply(total, op.cast("int64", size))
            self.rows[buffer] = buffer.with_(shape=[total], axis_separators=())
        return self.rows[buffer]


def _fused(indices: Sequence[PrimExpr], lane: Var) -> PrimExpr | None:
    """What the quotients and remainders of the lane are all taken of; None if not of one."""
    found: list[PrimExpr] = []
    for index in indices:
        for part in collect(index, (FloorDiv, FloorMod)):
            root = part.a
            while isinstance(root, FloorDiv | FloorMod):
                root = root.a
            if lane in collect(root, Var):
                found.append(root)
    same = all(expr_deep_equal(root, found[0]) for root in found)
    return found[0] if found and same else None


class _Named(Mutator):
    """Puts a variable in the place of an expression."""

    def __init__(self, expr: PrimExpr, var: Var) -> None:
        super().__init__()
        self.expr, self.var = expr, var

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The variable for the expression, else what is inside."""
        if expr_deep_equal(expr, self.expr):
            return self.var
        found: PrimExpr = self.visit_default(expr)
        return found


def flatten_vector_access(func: PrimFunc) -> PrimFunc:
    """The function with its vectors across rows as runs of memory."""
    kinds = [loop.kind is ForKind.VECTORIZED or VECTOR_REDUCTION in loop.annotations
             for loop in collect(func.body, For)]  # fmt: skip
    return rewrite_body(func, _Flatten()) if any(kinds) else func


def FlattenVectorAccess() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.FlattenVectorAccess``."""
    return make_pass("FlattenVectorAccess", flatten_vector_access)
