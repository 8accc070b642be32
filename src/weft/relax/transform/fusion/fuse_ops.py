"""FuseOps: groups calls of PrimFuncs that can be one kernel into a function, by their patterns.

Before, both PrimFuncs annotated (AnnotateTIROpPattern) as element-wise::

    with R.dataflow():
        lv = R.call_tir(cls.add, (x, y), out_sinfo=...)
        gv = R.call_tir(cls.exp, (lv,), out_sinfo=...)
        R.output(gv)

After (FuseTIR then makes a PrimFunc of the new function)::

    @R.function(private=True)
    def fused_add_exp(x, y):            # attribute Primitive
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, y), out_sinfo=...)
            gv = R.call_tir(cls.exp, (lv,), out_sinfo=...)
            R.output(gv)
        return gv

    with R.dataflow():
        gv = cls.fused_add_exp(x, y)
        R.output(gv)

Only bindings of dataflow blocks are fused (ConvertToDataflow creates such blocks). Constants become
parameters. ``fusion_partition`` decides which bindings are fused. The option
``relax.FuseOps.max_depth`` is the largest number of bindings in one function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import Pass, PassContext
from weft.relax.analysis.dependencies import binding_dependencies
from weft.relax.analysis.op_pattern import OpPatternKind, known_pattern
from weft.relax.expr import (
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.transform.fusion.fusion_partition import FusionNode, partition
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.relax.transform.passes import make_module_pass
from weft.support.errors import PassError
from weft.tir.function import PrimFunc

MAX_DEPTH: Final = 256
_KERNEL_CALLS = (Op.get("relax.call_tir"), Op.get("relax.call_tir_inplace"))

PassContext.register_option(
    "relax.FuseOps.max_depth", "int: the most bindings that one fused function may have"
)


def fuse_ops(mod: IRModule, opt_level: int, max_depth: int = MAX_DEPTH) -> IRModule:
    """The module with fused functions; ``mod`` at level 0, or if there is nothing to fuse."""
    if opt_level == 0:
        return mod
    groups: dict[Var, Group] = {}
    for func in mod.functions.values():
        if isinstance(func, Function) and is_groupable(func):
            weights = _weights(func)
            for block in collect(func.body, DataflowBlock):
                _add_groups(mod, block, weights, max_depth, groups)
    return make_grouped_functions(mod, groups)


def _weights(func: Function) -> set[Var]:
    """The parameters after the first ``num_input``."""
    count = func.attrs.get("num_input")
    return set() if count is None else set(func.params[int(count) :])


def _add_groups(
    mod: IRModule,
    block: DataflowBlock,
    weights: set[Var],
    max_depth: int,
    groups: dict[Var, Group],
) -> None:
    """Add to ``groups`` the groups of a block that have more than one binding."""
    partitions = partition(_nodes(mod, block, weights), max_depth)
    sizes: dict[int, int] = {}
    for root in partitions:
        sizes[root] = sizes.get(root, 0) + 1
    group_of: dict[int, Group] = {}
    for binding, root in zip(block.bindings, partitions, strict=True):
        if sizes[root] > 1:
            groups[binding.var] = group_of.setdefault(root, Group())


def _nodes(mod: IRModule, block: DataflowBlock, weights: set[Var]) -> Sequence[FusionNode]:
    nodes = [
        FusionNode(_pattern(mod, binding, weights), not isinstance(binding.var, DataflowVar))
        for binding in block.bindings
    ]
    for index, needed in enumerate(binding_dependencies(block.bindings)):
        for other in needed:
            nodes[other].users.append((index, nodes[index].pattern))
    return nodes


def _pattern(mod: IRModule, binding: Binding, weights: set[Var]) -> OpPatternKind:
    """The pattern of the PrimFunc that a binding calls; a field of a tuple is injective."""
    value = binding.value
    if not isinstance(binding, VarBinding):
        return OpPatternKind.OPAQUE
    if isinstance(value, TupleGetItem):
        return OpPatternKind.OPAQUE if value.tuple_value in weights else OpPatternKind.INJECTIVE
    callee = value.args[0] if isinstance(value, Call) and value.op in _KERNEL_CALLS else None
    if isinstance(callee, GlobalVar) and callee in mod:
        func = mod[callee]
        if isinstance(func, PrimFunc):
            return known_pattern(func)
    return OpPatternKind.OPAQUE


def FuseOps(fuse_opt_level: int = -1) -> Pass:  # noqa: N802 - TVM's name
    """The pass that fuses calls; level -1 is that of the PassContext, 0 fuses nothing."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        max_depth = int(ctx.config.get("relax.FuseOps.max_depth", MAX_DEPTH))
        if max_depth < 1:
            raise PassError(
                f"FuseOps: expected relax.FuseOps.max_depth of at least 1, got {max_depth}"
            )
        return fuse_ops(mod, level, max_depth)

    return make_module_pass("FuseOps", run)
