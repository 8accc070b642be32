"""Removal of bindings that nothing uses."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.purity import contains_impure_call
from weft.relax.builder.normalize import merged_blocks
from weft.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
)
from weft.relax.ir.lattice import defining_vars
from weft.support.errors import IRTypeError
from weft.support.recursion import deep_recursion


@deep_recursion
def remove_all_unused(func: Function) -> Function:
    """The function without bindings that are pure and unused, dataflow outputs included.

    A match_cast stays if it defines symbolic variables, and always outside of dataflow blocks,
    since it may fail.
    """
    if not isinstance(func, Function):
        raise IRTypeError(
            f"remove_all_unused: expected a relax Function, got {type(func).__name__}; for a "
            "module use relax.transform.DeadCodeElimination"
        )
    body = _clean(func.body, {})
    return func if body is func.body else func.with_(body=body)


def _clean(seq: RelaxExpr, live: dict[Var, int]) -> RelaxExpr:
    """A sequence without unused bindings; ``live`` gains every variable that it uses."""
    if not isinstance(seq, SeqExpr):
        return seq
    for var, count in uses(seq.body).items():
        live[var] = live.get(var, 0) + count
    blocks: list[BindingBlock] = []
    changed = False
    for block in reversed(seq.blocks):
        kept = _clean_block(block, live)
        changed = changed or kept is not block
        if kept.bindings:
            blocks.append(kept)
    if not changed and len(blocks) == len(seq.blocks):
        return seq
    return SeqExpr(merged_blocks(blocks[::-1]), seq.body, span=seq.span)


def _clean_block(block: BindingBlock, live: dict[Var, int]) -> BindingBlock:
    in_dataflow = isinstance(block, DataflowBlock)
    kept: list[Binding] = []
    changed = False
    for binding in reversed(block.bindings):
        if not _needed(binding, live, in_dataflow):
            changed = True
            continue
        value = _clean_value(binding.value, live)
        changed = changed or value is not binding.value
        kept.append(binding.with_(value=value))
    return type(block)(kept[::-1]) if changed else block


def _needed(binding: Binding, live: dict[Var, int], in_dataflow: bool) -> bool:
    if binding.var in live:
        return True
    if isinstance(binding, MatchCast):
        return not in_dataflow or bool(defining_vars(binding.struct_info))
    if isinstance(binding.value, Function):
        return False
    return not in_dataflow and contains_impure_call(binding.value)


def _clean_value(value: RelaxExpr, live: dict[Var, int]) -> RelaxExpr:
    if isinstance(value, If):
        then, other = _clean(value.true_branch, live), _clean(value.false_branch, live)
        for var, count in uses(value.cond).items():
            live[var] = live.get(var, 0) + count
        choice = value.with_(true_branch=then, false_branch=other)
        if choice is not value:
            choice.struct_info = value.struct_info
        return choice
    if isinstance(value, Function):
        return value.with_(body=_clean(value.body, live))
    for var, count in uses(value).items():
        live[var] = live.get(var, 0) + count
    return value
