"""ConvertBlocksToOpaque: block axes are replaced by the values they are bound to.

Before: ``vi = T.axis.spatial(8, i + 1); A[vi]``. After: ``A[i + 1]`` in a block without axes.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator, collect
from weft.ir.node import Array, Node
from weft.ir.summary import bits_of, identities
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body


class _Opaque(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.skip_all_but(bits_of(BlockRealize))
        self.values: dict[int, PrimExpr] = {}

    def visit_Var(self, var: Var) -> PrimExpr:
        return self.values.get(id(var), var)

    def visit_BlockRealize(self, realize: BlockRealize) -> BlockRealize:
        own: list[Node] = [axis.var for axis in realize.block.iter_vars]
        for var in collect(realize.predicate, Var):
            if var in own:
                raise IRValueError(
                    f"ConvertBlocksToOpaque: the predicate of the block {realize.block.name_hint} "
                    f"uses the block's own axis {var.name}; use the value that it is bound to"
                )
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            self.values[id(axis.var)] = op.cast(axis.var.dtype, self.visit(value))
        self.skip_less(identities(own))
        predicate = self.visit(realize.predicate)
        block = realize.block.with_(iter_vars=Array())
        return BlockRealize((), predicate, self.visit(block), span=realize.span)


def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """The function with every block made opaque."""
    return rewrite_body(func, _Opaque())


ConvertBlocksToOpaque = define_pass("ConvertBlocksToOpaque", convert_blocks_to_opaque)
