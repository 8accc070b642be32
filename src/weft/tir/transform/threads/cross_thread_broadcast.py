"""The last step of LowerCrossThreadReduction: one thread stores what all threads would store.

After a reduction over threads, a block of the same kernel may read the result outside of the loops
over these threads. Each of them would then store the same value to the same place. Before:
``for k in thread_binding(32, "threadIdx.x"): (R = sum); with T.block("C"): C[i] = R[i]``. After:
``for tx in thread_binding(32, "threadIdx.x"): with T.block("C"): T.where(tx == 0); C[i] = R[i]``.
Blocks that store to local memory stay as they are: there, each thread needs the value.
"""

from __future__ import annotations

from weft.tir import op
from weft.tir.expr import IterVar, Var
from weft.tir.stmt import BlockRealize, For, ForKind, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator
from weft.tir.transform.threads.thread_scope import Binding, binding_of, has_threads, scope_of


class BroadcastResults(StmtMutator):
    """``results``: data variable of a buffer -> the loops over the threads that reduce into it."""

    def __init__(self, results: dict[Var, list[For]]) -> None:
        super().__init__()
        self.results = results
        self.open: list[Binding] = []
        self.ready: set[Var] = set()

    def visit_For(self, loop: For) -> Stmt:
        binding = binding_of(loop)
        if binding is None:
            return loop.with_(body=self.visit(loop.body))
        self.open.append(binding)
        body = self.visit(loop.body)
        self.open.pop()
        if binding.is_block or not self.open:
            self.ready.clear()
        return loop.with_(body=body)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        missing = self.missing(realize)
        self.ready |= {region.buffer.data for region in block.writes} & set(self.results)
        return _by_the_first(realize, missing) if missing else self.visit_default(realize)

    def missing(self, realize: BlockRealize) -> list[For]:
        """The loops over threads that reduced what the block reads and are not around the block."""
        block = realize.block
        if any(scope_of(region.buffer) == "local" for region in block.writes):
            return []
        tags = {binding.tag for binding in self.open}
        by_tag: dict[str, For] = {}
        for region in block.reads:
            if region.buffer.data in self.ready:
                for loop in self.results[region.buffer.data]:
                    binding = binding_of(loop)
                    assert binding is not None
                    if binding.tag not in tags:
                        by_tag[binding.tag] = loop
        return [] if by_tag and has_threads(block.body) else list(by_tag.values())


def _by_the_first(realize: BlockRealize, threads: list[For]) -> Stmt:
    """The block inside loops over the threads, with a condition that only the first one runs it."""
    own = []
    predicate = realize.predicate
    for loop in threads:
        binding = binding_of(loop)
        assert binding is not None
        own.append((Var(f"t{binding.tag[-1]}", loop.loop_var.dtype), loop, binding.tag))
        predicate = op.logical_and(op.equal(own[-1][0], loop.min), predicate)
    body: Stmt = realize.with_(predicate=predicate)
    for var, loop, tag in reversed(own):
        axis = IterVar(None, Var("", var.dtype), IterVar.ThreadIndex, tag)
        body = For(var, loop.min, loop.extent, ForKind.THREAD_BINDING, body, axis)
    return body
