"""ConvertToDataflow: runs of pure bindings become dataflow blocks.

Before: ``a = R.exp(x); b = R.add(a, a); R.print(b)``. After: ``with R.dataflow(): a = R.exp(x);
b = R.add(a, a); R.output(b)``, then the print. Only a binding that branches or may have a side
effect ends a run; existing dataflow blocks are merged into the run around them. Variables that are
used only inside of their block become dataflow variables (``weft.relax.rewrite.canonical``).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.relax.analysis.purity import is_impure_call
from weft.relax.builder.normalize import merged_blocks
from weft.relax.expr import Binding, BindingBlock, Call, DataflowBlock, Function, If, SeqExpr
from weft.relax.expr_functor import PyExprMutator
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.passes import define_function_pass


class _Converter(PyExprMutator):
    def __init__(self, min_size: int) -> None:
        super().__init__()
        self.min_size = min_size

    def visit_seq_expr_(self, op: SeqExpr) -> SeqExpr:
        seq = expect(super().visit_seq_expr_(op), SeqExpr)
        blocks: list[BindingBlock] = []
        run: list[Binding] = []
        inside: list[DataflowBlock] = []  # the dataflow blocks in the run
        for block in seq.blocks:
            if isinstance(block, DataflowBlock):
                inside.append(block)
                run.extend(block.bindings)
                continue
            for binding in block.bindings:
                if _is_dataflow(binding.value):
                    run.append(binding)
                else:
                    blocks.append(self.finished(run, inside))
                    blocks.append(BindingBlock([binding]))
                    run, inside = [], []
        blocks.append(self.finished(run, inside))
        merged = list(merged_blocks(blocks))
        if _same_blocks(merged, seq.blocks):
            return seq
        return SeqExpr(merged, seq.body, span=seq.span)

    def finished(self, run: list[Binding], inside: list[DataflowBlock]) -> BindingBlock:
        """The block of a run: a dataflow block if it is long enough or contained one."""
        if len(inside) == 1 and len(inside[0].bindings) == len(run):
            return inside[0]
        return DataflowBlock(run) if inside or len(run) >= self.min_size else BindingBlock(run)


def _is_dataflow(value: RelaxExpr) -> bool:
    return not isinstance(value, If) and not (isinstance(value, Call) and is_impure_call(value))


def _same_blocks(rebuilt: Sequence[BindingBlock], blocks: Sequence[BindingBlock]) -> bool:
    """Whether the blocks hold the same bindings in the same kinds of block."""
    return len(rebuilt) == len(blocks) and all(
        new is old
        or (
            type(new) is type(old)
            and len(new.bindings) == len(old.bindings)
            and all(a is b for a, b in zip(new.bindings, old.bindings, strict=True))
        )
        for new, old in zip(rebuilt, blocks, strict=True)
    )


def convert_to_dataflow(func: Function, min_size: int = 2) -> Function:
    """The function with runs of at least ``min_size`` pure bindings in dataflow blocks."""
    rewritten: Function = _Converter(min_size).visit_expr(func)
    return canonicalize_bindings(rewritten)


ConvertToDataflow = define_function_pass("ConvertToDataflow", convert_to_dataflow)
