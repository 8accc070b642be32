"""The variables whose memory an in-place call overwrites.

Passes must not treat such a variable as a plain value: if common-subexpression elimination let two
of them share memory, or a pass folded one to a constant, the call would overwrite what others read.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.analysis.bindings import bindings_in_order
from weft.relax.expr import Call, Function, If, SeqExpr, Tuple, Var
from weft.relax.op.base import CALL_TIR_INPLACE

_CALL_INPLACE_PACKED = Op.get("relax.call_inplace_packed")


def written_variables(func: Function) -> set[Var]:
    """The variables that an in-place call overwrites, and those that may be the same memory.

    A pass asks this before it shares or folds a value. Linear if no call writes in place.
    """
    bindings = bindings_in_order(func)
    written: set[Var] = set()
    for binding in bindings:
        written.update(targets(binding.value))
    before = -1
    while len(written) != before:
        before = len(written)
        for binding in reversed(bindings):
            if binding.var in written:
                written.update(same_memory(binding.value))
    return written


def targets(value: RelaxExpr) -> list[Var]:
    """The variables that an in-place call overwrites; empty for any other value."""
    if not isinstance(value, Call):
        return []
    if value.op is CALL_TIR_INPLACE:
        arguments = expect(value.args[1], Tuple).fields
    elif value.op is _CALL_INPLACE_PACKED:
        arguments = value.args[1:]
    else:
        return []
    places = [int(index) for index in value.attrs["inplace_indices"] if int(index) >= 0]
    return [var for place in places for var in collect(arguments[place], Var)]


def same_memory(value: RelaxExpr) -> list[Var]:
    """The variables that a value may share memory with."""
    if isinstance(value, If):
        branches: list[RelaxExpr] = [value.true_branch, value.false_branch]
        ends = [branch.body if isinstance(branch, SeqExpr) else branch for branch in branches]
        return [var for end in ends for var in collect(end, Var)]
    if isinstance(value, Call) and isinstance(value.op, Op):
        if has(value.op, Trait.VIEW | Trait.SAME_VALUE):
            return collect(value.args[0], Var)
        if not has(value.op, Trait.OPAQUE):
            return targets(value)
    if isinstance(value, Function):
        return []
    return collect(value, Var)


__all__ = ["same_memory", "targets", "written_variables"]
