"""Why neighbouring operators did not fuse: the rules of FuseOps, asked again."""

from __future__ import annotations

from collections.abc import Sequence

from weft.driver.recording import PassRun
from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.relax.expr import Binding, Call, DataflowBlock, Function
from weft.relax.transform.fusion.fuse_ops import MAX_DEPTH, fusion_nodes
from weft.relax.transform.fusion.fusion_partition import partition, why_apart

Row = dict[str, object]


def fusion_rows(runs: Sequence[PassRun]) -> list[Row]:
    """A row for each pair of neighbours that the last FuseOps left apart.

    They have the names of the groups in the graph after fusion.
    """
    fused = [run for run in runs if run.name == "FuseOps"]
    if not fused:
        return []
    module = IRModule(dict(fused[-1].before))
    rows: list[Row] = []
    for func in module.functions.values():
        if isinstance(func, Function):
            for block in collect(func.body, DataflowBlock):
                rows += _rows(module, block.bindings)
    return rows


def _rows(module: IRModule, bindings: Sequence[Binding]) -> list[Row]:
    nodes = fusion_nodes(module, bindings)
    roots = partition(nodes, MAX_DEPTH)
    names = [_group_name([bindings[at] for at, other in enumerate(roots) if other == root])
             for root in roots]  # fmt: skip
    rows: list[Row] = []
    for at, user, reason in why_apart(nodes, roots):
        if _kernel_of(bindings[at]) and _kernel_of(bindings[user]):
            rows.append(
                {
                    "producer": names[at],
                    "consumer": names[user],
                    "reason": f"{_kernel_of(bindings[at])} and {_kernel_of(bindings[user])}: "
                    f"{reason}",
                }
            )
    return rows


def _kernel_of(binding: Binding) -> str:
    """The PrimFunc that a binding calls; empty if it does something else."""
    value = binding.value
    callee = value.args[0] if isinstance(value, Call) and value.args else None
    return callee.name_hint if isinstance(callee, GlobalVar) else ""


def _group_name(bindings: Sequence[Binding]) -> str:
    """The name that a group gets: that of its kernel, or of the fused function."""
    names = [_kernel_of(binding) for binding in bindings if _kernel_of(binding)]
    return names[0] if len(names) == 1 else "fused_" + "_".join(names)
