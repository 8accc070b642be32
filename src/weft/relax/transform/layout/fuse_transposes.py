"""FuseTransposes: the transposes around an attention become a part of its kernel.

Before, for tensors of (batch, heads, length, features), as PyTorch and ONNX have them::

    a = R.permute_dims(q, (0, 2, 1, 3)); b = R.permute_dims(k, ...); c = R.permute_dims(v, ...)
    d = R.nn.attention(a, b, c)
    e = R.permute_dims(d, (0, 2, 1, 3))

After: ``e = cls.fused_...(q, k, v)``, a group like those of FuseOps, which FuseTIR makes one
kernel. FuseOps itself does not fuse a transpose into an operator that reads elements more than
once, since each read would be slow. Attention is an exception: it copies what it reads more than
once. A transpose is fused if it keeps the last axis in place and only the attention uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.analysis.bindings import udchain
from weft.relax.expr import Call, DataflowBlock, DataflowVar, Function, Var
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.relax.transform.graph.movement.scope import PERMUTE, axes_of, name_of

_READERS: Final = frozenset(["relax.nn.attention", "relax.nn.attention_bias"])
_TENSORS: Final = 3
"""The first three arguments are queries, keys and values."""


def _groups_of(block: DataflowBlock) -> dict[Var, Group]:
    """Variable -> its group, for each attention of a block that transposes join, and for those."""
    values = {binding.var: binding.value for binding in block.bindings}
    users = udchain(block)
    groups: dict[Var, Group] = {}
    for var, value in values.items():
        if name_of(value) in _READERS:
            operands = [other for other in value.args[:_TENSORS] if _joins(values.get(other))]
            before = [other for other in operands if _is_only_for(other, var, users)]
            after = [other for other in users.get(var, ()) if _joins(values.get(other))]
            whole = after if after and _is_only_for(var, after[0], users) else []
            if before or whole:
                groups |= dict.fromkeys([*before, var, *whole], Group())
    return groups


def _joins(value: RelaxExpr | None) -> bool:
    """Whether a value is a transpose that keeps the last axis, and with it runs of memory."""
    if not isinstance(value, Call) or name_of(value) != PERMUTE:
        return False
    axes = axes_of(value)
    return axes is not None and axes[-1:] == [len(axes) - 1]


def _is_only_for(var: RelaxExpr, user: Var, users: Mapping[Var, list[Var]]) -> bool:
    return isinstance(var, DataflowVar) and users.get(var) == [user]


def fuse_transposes(mod: IRModule) -> IRModule:
    """The module with the transposes around attentions in their kernels."""
    groups: dict[Var, Group] = {}
    for func in mod.functions.values():
        if isinstance(func, Function) and is_groupable(func):
            for block in collect(func.body, DataflowBlock):
                groups |= _groups_of(block)
    return make_grouped_functions(mod, groups)


FuseTransposes = define_module_pass("FuseTransposes", fuse_transposes)
