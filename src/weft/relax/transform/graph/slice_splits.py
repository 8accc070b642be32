"""SliceSplits: parts of a split that are only computed with, element by element, become slices.

Before: ``halves = split(x, 2); y = halves[0] * sigmoid(halves[1])`` (a gated linear unit). After:
``y = x[:n] * sigmoid(x[n:])``. A split writes all its parts, while a slice becomes an index of the
kernel that reads it. So a split stays where another operator reads a part, which would have to be
copied by itself. Passes that look for splits come before.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    TupleGetItem,
    Var,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.transform.graph.movement.slices import split_ranges
from weft.relax.transform.passes import define_operator_pass

_SPLIT = Op.get("relax.split")
_FUSED = Trait.ELEMENTWISE | Trait.MOVES


class _Slicer(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.splits: dict[Var, Call] = {}
        """The results of splits whose parts become slices."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.splits = _splits_to_slice(block)
        return super().visit_dataflow_block_(block)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelaxExpr:
        split = self.splits.get(op.tuple_value) if isinstance(op.tuple_value, Var) else None
        if split is None:
            return super().visit_tuple_getitem_(op)
        return _slice(split, self.visit_expr(split.args[0]), op.index)


def _splits_to_slice(block: DataflowBlock) -> dict[Var, Call]:
    """The splits of a block all parts of which are read by operators that fuse with slices."""
    readers: dict[Var, list[Binding]] = {}
    for binding in block.bindings:
        for var in uses(binding.value):
            readers.setdefault(var, []).append(binding)

    def is_fused(part: Binding) -> bool:
        values = [reader.value for reader in readers.get(part.var, [])]
        is_inner = isinstance(part.value, TupleGetItem) and isinstance(part.var, DataflowVar)
        return is_inner and all(isinstance(x, Call) and has(x.op, _FUSED) for x in values)

    return {
        binding.var: binding.value
        for binding in block.bindings
        if isinstance(binding.value, Call)
        and binding.value.op is _SPLIT
        and isinstance(binding.var, DataflowVar)
        and split_ranges(binding.value) is not None
        and all(is_fused(part) for part in readers.get(binding.var, []))
    }


def _slice(split: Call, data: RelaxExpr, index: int) -> Call:
    """The part of a split at an index, as a slice."""
    begin, end = (split_ranges(split) or [])[index]
    return expect(op.strided_slice(data, [split.attrs["axis"]], [begin], [end]), Call)


def slice_splits(func: Function) -> Function:
    """The function with slices instead of splits where slices fuse."""
    return _Slicer().visit_expr(func)


SliceSplits = define_operator_pass("SliceSplits", slice_splits)
