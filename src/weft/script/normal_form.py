"""The form of a program that its text has: neighbouring blocks of one kind are one block.

A graph script has no line between two neighbouring binding blocks and nothing for an empty one.
The parser therefore gives the joined block, also of two ``with R.dataflow():`` in a row, as TVM
0.20's does; so do the block builder and the pass ``Normalize``.
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
    """The program as printing and parsing gives it back; the same object if it is in this form."""
    merge = _MergeBlocks()
    if not isinstance(node, IRModule):
        normal: Node = merge.visit(node)
        return normal
    functions = {var: merge.visit(func) for var, func in node.functions.items()}
    for var, func in node.functions.items():
        if functions[var] is not func:
            return IRModule(functions, attrs=node.attrs, global_infos=node.global_infos)
    return node
