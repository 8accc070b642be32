"""SkipPadding: a sum leaves out the terms that are products with the padding of an image.

For blocks with the annotation ``SKIP_PADDING``. Before::

    for y in range(3):
        s[c] = s[c] + T.if_then_else(0 < r + y and r + y < 8, x[r + y - 1], T.float32(0)) * w[y, c]

After::

    for y in range(3):
        if 0 < r + y and r + y < 8:
            s[c] = s[c] + x[r + y - 1] * w[y, c]

Later the loops are cut where the condition starts or stops to hold (PartitionGuardedLoops), or
unrolled, so that the condition is a constant: no code is left for terms of padding. A schedule must
ask for this, since it changes a result: a weight that is infinite or NaN times the zero of padding
would be NaN. Runs after LowerOpaqueBlock, which leaves the annotation around the store. Libraries
of convolutions skip the same terms (Georganas et al., "Anatomy of High-Performance Deep Learning
Convolutions on SIMD Architectures", 2018).
"""

from __future__ import annotations

from typing import Final

from weft.arith.conjunction import conjunction, conjuncts
from weft.ir.expr import FloatImm, PrimExpr
from weft.ir.functor import collect, contains, mentions
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Add, Call, Mul, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, BufferStore, For, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

SKIP_PADDING: Final = "pragma_skip_padding"
"""The annotation of a block whose sum leaves out products with the zeros of padding."""


class _Skip(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        """Test outside of a loop what does not depend on it: for all pixels of a row, the row.

        What reads memory is tested inside, where the loop's extent may be what makes it safe.
        """
        inner: For = self.visit_default(loop)
        if inner is loop or not isinstance(inner.body, IfThenElse) or inner.body.else_case:
            return inner
        tests = conjuncts(inner.body.condition)
        outside = [
            test
            for test in tests
            if not mentions(test, inner.loop_var) and not contains(test, BufferLoad)
        ]
        inside = [test for test in tests if all(test is not other for other in outside)]
        if not outside:
            return inner
        body = inner.body.then_case
        body = IfThenElse(conjunction(inside), body) if inside else body
        return IfThenElse(conjunction(outside), inner.with_(body=body))

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        body: Stmt = self.visit(attr.body)
        if attr.attr_key != SKIP_PADDING:
            return attr.with_(body=body)
        return (_guarded(body) or body) if isinstance(body, BufferStore) else body


def has_padding(stmt: Stmt) -> bool:
    """Whether a sum in a statement has terms that ``SKIP_PADDING`` leaves out."""
    return any(_guarded(store) is not None for store in collect(stmt, BufferStore))


def _guarded(store: BufferStore) -> Stmt | None:
    """The store of a sum, made conditional on its padded factor being inside of the image.

    None if no factor is padded.
    """
    total = store.value
    if not isinstance(total, Add) or not isinstance(total.b, Mul):
        return None
    left, right = total.b.a, total.b.b
    for value, factors in ((left, lambda it: (it, right)), (right, lambda it: (left, it))):
        padded = padded_element(value)
        if padded is not None:
            condition, element = padded
            term = op.multiply(*factors(element))
            return IfThenElse(condition, store.with_(value=op.add(total.a, term)))
    return None


def padded_element(value: object) -> tuple[PrimExpr, PrimExpr] | None:
    """(condition, element) of ``if_then_else(condition, element, 0.0)``; None for other values."""
    if isinstance(value, Call) and is_call(value, "if_then_else"):
        condition, element, outside = value.args
        if isinstance(outside, FloatImm) and outside.value == 0:
            return condition, element
    return None


def skip_padding(func: PrimFunc) -> PrimFunc:
    """Make the annotated sums of a function skip their terms of padding."""
    return rewrite_body(func, _Skip())


SkipPadding = define_pass("SkipPadding", skip_padding)
