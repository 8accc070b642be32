"""SkipPadding: a sum leaves out the terms that are products with the padding of an image.

For blocks with the annotation ``SKIP_PADDING``. Before::

    for y in range(3):
        s[c] = s[c] + T.if_then_else(0 < r + y and r + y < 8, x[r + y - 1], T.float32(0)) * w[y, c]

After::

    for y in range(3):
        if 0 < r + y and r + y < 8:
            s[c] = s[c] + x[r + y - 1] * w[y, c]

The loops are then cut where the condition starts and stops to hold (PartitionGuardedLoops), or
unrolled, which decides it: nothing is left of the terms outside. A weight that is no finite number
no longer makes a result NaN through padding alone, which is why a schedule has to ask for it. Runs
after LowerOpaqueBlock, which leaves the annotation around the store. Libraries of convolutions skip
the same terms (Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures", 2018).
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import FloatImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.expr import Add, Call, Mul
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, BufferStore, IfThenElse, Stmt
from weft.tir.transform.condition_range import is_call
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body

SKIP_PADDING: Final = "pragma_skip_padding"
"""The annotation of a block: terms that are a product with the zero of a padding are no terms."""


class _Skip(StmtMutator):
    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        body: Stmt = self.visit(attr.body)
        if attr.attr_key != SKIP_PADDING:
            return attr.with_(body=body)
        return (_guarded(body) or body) if isinstance(body, BufferStore) else body


def has_padding(stmt: Stmt) -> bool:
    """Whether a sum in a statement has terms that ``SKIP_PADDING`` leaves out."""
    return any(_guarded(store) is not None for store in collect(stmt, BufferStore))


def _guarded(store: BufferStore) -> Stmt | None:
    """The store of a sum below the condition of the padded factor of its term; None without one."""
    total = store.value
    if not isinstance(total, Add) or not isinstance(total.b, Mul):
        return None
    left, right = total.b.a, total.b.b
    for value, factors in ((left, lambda it: (it, right)), (right, lambda it: (left, it))):
        padded = _padded(value)
        if padded is not None:
            condition, element = padded
            term = op.multiply(*factors(element))
            return IfThenElse(condition, store.with_(value=op.add(total.a, term)))
    return None


def _padded(value: Any) -> tuple[PrimExpr, PrimExpr] | None:
    """The condition and the element of ``if_then_else(condition, element, 0.0)``."""
    if isinstance(value, Call) and is_call(value, "if_then_else"):
        condition, element, outside = value.args
        if isinstance(outside, FloatImm) and outside.value == 0:
            return condition, element
    return None


def skip_padding(func: PrimFunc) -> PrimFunc:
    """The function whose annotated sums have no terms of paddings."""
    return rewrite_body(func, _Skip())


def SkipPadding() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.SkipPadding``."""
    return make_pass("SkipPadding", skip_padding)
