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

Only bindings of dataflow blocks are fused (ConvertToDataflow creates such blocks). A gather is not
fused into the index of another one (``index_parameters``), and expensive functions of a small
tensor are not fused where that is broadcast (``element_cost``). Constants become parameters.
``fusion_partition`` decides which bindings are fused. The option ``relax.FuseOps.max_depth`` is the
largest number of bindings in one function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import PassContext, define_module_pass
from weft.relax.analysis.dependencies import binding_dependencies, operands
from weft.relax.analysis.element_cost import element_cost, element_count, reads_of_element
from weft.relax.analysis.index_parameters import index_parameters
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
from weft.relax.op.base import CALLS_OF_KERNELS
from weft.relax.transform.fusion.fusion_partition import FusionNode, partition
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.support.errors import PassError
from weft.tir.function import PrimFunc

MAX_DEPTH: Final = 256
LAUNCH: Final = 2000.0
"""Nanoseconds that a kernel of its own may cost: its call, and a small tensor in the cache."""
STORED: Final = 0.5
"""Nanoseconds to write an element and to read it again."""

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
    partitions = partition(fusion_nodes(mod, block.bindings, weights), max_depth)
    sizes: dict[int, int] = {}
    for root in partitions:
        sizes[root] = sizes.get(root, 0) + 1
    group_of: dict[int, Group] = {}
    for binding, root in zip(block.bindings, partitions, strict=True):
        if sizes[root] > 1:
            groups[binding.var] = group_of.setdefault(root, Group())


def fusion_nodes(
    mod: IRModule, bindings: Sequence[Binding], weights: Collection[Var] = ()
) -> list[FusionNode]:
    """The bindings of a dataflow block as ``partition`` takes them.

    ``weights`` are parameters that are known before the calls: their fields are not fused.
    """
    nodes = [
        FusionNode(_pattern(mod, binding, weights), not isinstance(binding.var, DataflowVar))
        for binding in bindings
    ]
    for index, needed in enumerate(binding_dependencies(bindings)):
        for other in needed:
            nodes[other].users.append((index, nodes[index].pattern))
    _keep_gathered_indices(mod, bindings, nodes)
    _keep_costly_broadcasts(mod, bindings, nodes)
    return nodes


def _keep_gathered_indices(
    mod: IRModule, bindings: Sequence[Binding], nodes: Sequence[FusionNode]
) -> None:
    """Say of each gather whose result becomes the index of another one that it is not fused away.

    Fused, n of them in a row would be an index with 3 to the power of n loads.
    """
    choosers = [_choosers(mod, binding) for binding in bindings]
    becomes_index = [False] * len(nodes)
    for index in range(len(nodes) - 1, -1, -1):
        becomes_index[index] = any(
            bindings[index].var in choosers[user]
            or (pattern <= OpPatternKind.INJECTIVE and becomes_index[user])
            for user, pattern in nodes[index].users
        )
        if choosers[index] and becomes_index[index]:
            nodes[index].is_output = True
            nodes[index].why_kept = "it gathers what is the index of another gather"


def _keep_costly_broadcasts(
    mod: IRModule, bindings: Sequence[Binding], nodes: Sequence[FusionNode]
) -> None:
    """Say of what is broadcast that it is not fused away if computing it again would cost much.

    That is the last value before the broadcast: what it is computed of may be fused with it. The
    same holds for what a kernel reads at several places for each element, as a resize does.
    """
    costs = [_cost(mod, binding) for binding in bindings]
    counts = [element_count(binding.var.struct_info) for binding in bindings]
    for index, node in enumerate(nodes):
        if node.pattern > OpPatternKind.INJECTIVE or node.is_output:
            continue
        for user, pattern in node.users:
            count, larger = counts[index], counts[user]
            if count is None or larger is None or pattern > OpPatternKind.INJECTIVE:
                continue
            is_broadcast = pattern <= OpPatternKind.BROADCAST
            reads = 1 if is_broadcast else _reads(mod, bindings[user], bindings[index].var)
            again = costs[index] * (reads * larger - count)
            if is_broadcast and again > LAUNCH:
                why = "it would be computed again for each element that it is copied to"
            elif reads > 1 and again > LAUNCH + STORED * count:
                why = "it would be computed again each time that it is read"
            else:
                why = ""
            if why:
                node.is_output, node.why_kept = True, why
                break
            if larger <= count:
                costs[user] += costs[index]


def _reads(mod: IRModule, user: Binding, var: Var) -> int:
    """How many elements of ``var`` a kernel reads for an element of its result: a resize, four."""
    func = _callee(mod, user)
    if func is None or not isinstance(user.value, Call):
        return 1
    passed = zip(func.params, operands(user.value.args[1]), strict=False)
    buffers = [func.buffer_map[param] for param, given in passed if given is var]
    return reads_of_element(func, buffers)


def _cost(mod: IRModule, binding: Binding) -> float:
    func = _callee(mod, binding)
    return 0.0 if func is None else element_cost(func)


def _choosers(mod: IRModule, binding: Binding) -> set[RelaxExpr]:
    """The arguments of a call of a PrimFunc that choose which elements of others it reads."""
    func = _callee(mod, binding)
    if func is None or not isinstance(binding.value, Call):
        return set()
    arguments = operands(binding.value.args[1])
    return {arguments[at] for at in index_parameters(func) if at < len(arguments)}


def _pattern(mod: IRModule, binding: Binding, weights: Collection[Var]) -> OpPatternKind:
    """The pattern of the PrimFunc that a binding calls; a field of a tuple is injective."""
    value = binding.value
    if not isinstance(binding, VarBinding):
        return OpPatternKind.OPAQUE
    if isinstance(value, TupleGetItem):
        return OpPatternKind.OPAQUE if value.tuple_value in weights else OpPatternKind.INJECTIVE
    func = _callee(mod, binding)
    return OpPatternKind.OPAQUE if func is None else known_pattern(func)


def _callee(mod: IRModule, binding: Binding) -> PrimFunc | None:
    """The PrimFunc that a binding calls; None if it does something else."""
    value = binding.value
    callee = value.args[0] if isinstance(value, Call) and value.op in CALLS_OF_KERNELS else None
    func = mod[callee] if isinstance(callee, GlobalVar) and callee in mod else None
    return func if isinstance(func, PrimFunc) else None


def _fused_by_options(mod: IRModule, fuse_opt_level: int = -1) -> IRModule:
    """The module with calls fused; level -1 is that of the PassContext, 0 fuses nothing."""
    ctx = PassContext.current()
    level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
    max_depth = int(ctx.config.get("relax.FuseOps.max_depth", MAX_DEPTH))
    if max_depth < 1:
        raise PassError(f"FuseOps: expected relax.FuseOps.max_depth of at least 1, got {max_depth}")
    return fuse_ops(mod, level, max_depth)


FuseOps = define_module_pass("FuseOps", _fused_by_options)
