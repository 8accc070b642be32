"""The parts of the in-place analysis, under the names that TVM's tests use."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.module import IRModule
from weft.relax.analysis.inplace import aliases, inplace_opportunities, liveness
from weft.relax.expr import Call, DataflowBlock, Var
from weft.relax.transform.memory.dataflow_use_inplace_calls import single_inplace_call


def dataflow_liveness_analysis(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """First and last binding that needs each variable."""
    return liveness(block)


def dataflow_alias_analysis(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """The memory that each variable may be, and the memory that each tuple's fields may be."""
    return aliases(block, inputs)


def dataflow_inplace_analysis(
    block: DataflowBlock,
    inputs: Sequence[Var],
    mod: IRModule,  # noqa: ARG001 - of TVM's signature
) -> tuple[list[tuple[int, set[int]]], list[tuple[int, set[int]]]]:
    """(binding, arguments that may hold its result): of sufficient size, and of equal shape."""
    by_size, of_the_shape = inplace_opportunities(block, inputs)
    return (
        [(item.binding_idx, set(item.arg_idxs)) for item in by_size],
        [(item.binding_idx, set(item.arg_idxs)) for item in of_the_shape],
    )


def dataflow_single_inplace_call(
    mod: IRModule, call: Call, inplace_indices: list[int]
) -> tuple[Call, IRModule]:
    """The call rewritten to overwrite an argument, and the module with the kernel for it."""
    return single_inplace_call(mod, call, inplace_indices)
