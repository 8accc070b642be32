"""Which bindings of a dataflow block must come before which others.

A binding depends on the bindings of the variables it uses, on the match_casts that define its
symbolic variables, and on earlier accesses to the same memory: a call that writes in place must
stay after all earlier readers of that memory, under any name (a view, a field of a tuple), and
before all later ones. A pass that moves bindings (fusion, sorting) must keep all of these edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.relax.analysis.written import same_memory, targets
from weft.relax.expr import Binding, Call, MatchCast, ShapeExpr, Tuple, TupleGetItem, Var
from weft.relax.ir.lattice import defining_vars, symbolic_vars
from weft.tir.expr import Var as TirVar


def operands(value: RelaxExpr) -> list[RelaxExpr]:
    """The leaves that a value in normal form uses, in order, with repetitions; tuples flattened."""
    if isinstance(value, Tuple):
        return [leaf for item in value.fields for leaf in operands(item)]
    if isinstance(value, TupleGetItem):
        return operands(value.tuple_value)
    if isinstance(value, Call):
        leaves = [leaf for arg in value.args for leaf in operands(arg)]
        return [*operands(value.op), *leaves] if isinstance(value.op, Var) else leaves
    return [value]


def binding_dependencies(bindings: Sequence[Binding]) -> list[list[int]]:
    """For each binding, the positions of the earlier ones that it depends on, in order of use."""
    definition: dict[Var, int] = {}
    accesses = _Accesses(bindings)
    symbols: dict[TirVar, int] = {}
    dependencies: list[list[int]] = []
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
        needed.update(dict.fromkeys(accesses.before(index, used)))
        definition[binding.var] = index
        if isinstance(binding, MatchCast):
            for symbol in defining_vars(binding.struct_info):
                symbols.setdefault(symbol, index)
        dependencies.append([*needed])
    return dependencies


class _Accesses:
    """Which bindings of a block read and write which memory; empty if none writes in place.

    Variables that may share memory have the same *place* (a union-find tree). All memory from
    outside of the block is one place, since the block does not show which of it is a view of which.
    """

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self.targets = {
            index: written
            for index, binding in enumerate(bindings)
            if (written := targets(binding.value))
        }
        self.parent: dict[Var | None, Var | None] = {}
        self.readers: dict[Var | None, list[int]] = {}
        self.writer: dict[Var | None, int] = {}
        if self.targets:
            self.inside = {binding.var for binding in bindings}
            for binding in bindings:
                for var in same_memory(binding.value):
                    self.parent[self.place(var)] = self.place(binding.var)

    def place(self, var: Var | None) -> Var | None:
        """The variable that represents the memory of ``var``; None for memory from outside."""
        if var not in self.inside:
            var = None
        while var in self.parent and self.parent[var] is not var:
            var = self.parent[var]
        return var

    def before(self, index: int, used: Sequence[Var]) -> list[int]:
        """Record what ``index`` accesses, and return the bindings it must follow because of it."""
        if not self.targets:
            return []
        read = {self.place(var) for var in used}
        written = {self.place(var) for var in self.targets.get(index, ())}
        earlier = [self.writer[place] for place in read | written if place in self.writer]
        for place in written:
            earlier.extend(self.readers.pop(place, ()))
            self.writer[place] = index
        for place in read - written:
            self.readers.setdefault(place, []).append(index)
        return sorted(earlier)


def _used_vars(value: RelaxExpr) -> list[Var]:
    """The variables in a value, nested functions and branches included."""
    if isinstance(value, Call | Tuple | TupleGetItem | Var | ShapeExpr):
        return [leaf for leaf in operands(value) if isinstance(leaf, Var)]
    return collect(value, Var)


__all__ = ["binding_dependencies", "operands"]
