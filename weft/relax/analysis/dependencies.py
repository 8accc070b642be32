"""Which bindings of a dataflow block must come before which others.

A binding depends on those that bind the variables it uses, on the match_casts that define the
symbolic variables it mentions, and, if it writes into an argument in place, on all earlier readers
of that argument. Whoever moves bindings (fusion, sorting) keeps to these edges, not only to uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.functor import collect
from weft.relax.expr import Call, MatchCast, ShapeExpr, Tuple, TupleGetItem, Var
from weft.relax.lattice import defining_vars, symbolic_vars
from weft.relax.op.base import CALL_TIR_INPLACE


def operands(value: Any) -> list[Any]:
    """The leaves that a value in normal form uses, tuples opened, in order, with repetitions."""
    if isinstance(value, Tuple):
        return [leaf for item in value.fields for leaf in operands(item)]
    if isinstance(value, TupleGetItem):
        return operands(value.tuple_value)
    if isinstance(value, Call):
        found = [leaf for arg in value.args for leaf in operands(arg)]
        return [*operands(value.op), *found] if isinstance(value.op, Var) else found
    return [value]


def binding_dependencies(bindings: Sequence[Any]) -> list[list[int]]:
    """For each binding, the positions of the earlier ones that it depends on, in order of use."""
    definition: dict[Var, int] = {}
    readers: dict[Var, list[int]] = {}
    symbols: dict[Any, int] = {}
    found: list[list[int]] = []
    for index, binding in enumerate(bindings):
        needed: dict[int, None] = {}
        used = _used_vars(binding.value)
        for var in used:
            if var in definition:
                needed[definition[var]] = None
        if symbols:
            for symbol in symbolic_vars([binding.value, binding.var.struct_info]):
                if symbol in symbols:
                    needed[symbols[symbol]] = None
        if isinstance(binding.value, Call) and binding.value.op is CALL_TIR_INPLACE:
            for var in used:
                needed.update(dict.fromkeys(readers.get(var, ())))
        for var in used:
            readers.setdefault(var, []).append(index)
        definition[binding.var] = index
        if isinstance(binding, MatchCast):
            for symbol in defining_vars(binding.struct_info):
                symbols.setdefault(symbol, index)
        found.append([*needed])
    return found


def _used_vars(value: Any) -> list[Var]:
    """The variables in a value, nested functions and branches included."""
    if isinstance(value, Call | Tuple | TupleGetItem | Var | ShapeExpr):
        return [leaf for leaf in operands(value) if isinstance(leaf, Var)]
    return collect(value, Var)


__all__ = ["binding_dependencies", "operands"]
