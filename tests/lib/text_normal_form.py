"""The form of a program that printing and parsing preserves: neighbouring blocks are joined.

A graph script cannot express where one of two neighbouring binding blocks ends, nor an empty block.
So the parser joins neighbouring blocks of one kind, also two consecutive ``with R.dataflow():``, as
in TVM 0.20; so do the block builder and the pass ``Normalize``.
"""

from __future__ import annotations

from weft.ir.functor import Mutator
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.relax.builder.normalize import merged_blocks
from weft.relax.expr import SeqExpr
from weft.support.recursion import deep_recursion


class _MergeBlocks(Mutator):
    def visit_SeqExpr(self, node: SeqExpr) -> SeqExpr:
        sequence: SeqExpr = self.visit_default(node)
        return sequence.with_(blocks=merged_blocks(sequence.blocks))


@deep_recursion
def text_normal_form(node: Node) -> Node:
    """The program that printing and parsing gives; the same object if it has this form already."""
    merge = _MergeBlocks()
    if not isinstance(node, IRModule):
        normal: Node = merge.visit(node)
        return normal
    functions = {var: merge.visit(func) for var, func in node.functions.items()}
    for var, func in node.functions.items():
        if functions[var] is not func:
            return IRModule(functions, attrs=node.attrs, global_infos=node.global_infos)
    return node
