"""LowerInitBlock: the ``init`` of a reduction becomes a guarded statement before the body.

Before: ``with T.init(): C[vi] = 0`` in a block with the reduction axis ``vk``.
After: ``if vk == 0: C[vi] = 0`` followed by the update. An ordered axis is treated the same.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.tir import op
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, IfThenElse, Stmt, seq
from weft.tir.transform.empty_reductions import initialise_empty_reductions
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class _Lower(StmtMutator):
    def visit_Block(self, block: Block) -> Stmt:
        block = self.visit_default(block)
        if block.init is None:
            return block
        return block.with_(init=None, body=seq(_guarded(block), block.body))


def _guarded(block: Block) -> Stmt:
    """The init, guarded by the condition that every accumulating axis is at its first value."""
    conditions: list[PrimExpr] = [
        op.equal(axis.var, axis.dom.min)
        for axis in block.iter_vars
        if axis.accumulates and axis.dom is not None
    ]
    assert block.init is not None
    return IfThenElse(op.all(*conditions), block.init) if conditions else block.init


def lower_init_block(func: PrimFunc) -> PrimFunc:
    """The function without ``init`` statements; empty reductions give the identity."""
    if not any(block.init is not None for block in collect(func.body, Block)):
        return func
    return rewrite_body(initialise_empty_reductions(func), _Lower())


LowerInitBlock = define_pass("LowerInitBlock", lower_init_block)
