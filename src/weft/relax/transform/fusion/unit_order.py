"""Whether bindings can be grouped without a cycle, for passes that form groups step by step.

A group depends on another if one of its bindings does, directly or through other bindings. Two
groups must not depend on each other, since then no order of calls exists. ``UnitOrder`` keeps the
groups of a block. To answer whether a set of bindings may be merged, it walks back from what the
set needs, and treats each group as a whole (the rule for operator fusion in TVM, Chen et al. 2018,
for groups of any shape).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.relax.analysis.dependencies import binding_dependencies
from weft.relax.expr import Binding, Var
from weft.relax.transform.fusion.grouping import Group


class UnitOrder:
    """The groups of a block so far; a binding without a group counts as a group of one."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self.place: dict[Var, int] = {b.var: index for index, b in enumerate(bindings)}
        self.variables: list[Var] = [binding.var for binding in bindings]
        self.needs = binding_dependencies(bindings)
        self.groups: dict[Var, Group] = {}
        self.members: dict[Group, list[Var]] = {}

    def can_merge(self, variables: Iterable[Var]) -> bool:
        """Whether these variables and the groups that they belong to may become one group."""
        unit = self._unit_of(variables)
        first = min(unit)
        todo = [need for index in unit for need in self.needs[index] if need not in unit]
        seen: set[int] = set()
        while todo:
            index = todo.pop()
            if index in seen:
                continue
            other = self._unit_of([self.variables[index]])
            if max(other) < first:  # what it needs comes even earlier, so it cannot need the unit
                seen |= other
                continue
            seen |= other
            for member in other:
                for need in self.needs[member]:
                    if need in unit:
                        return False
                    todo.append(need)
        return True

    def merge(self, variables: Iterable[Var], group: Group) -> None:
        """Make one group of these variables and the groups that they belong to."""
        indices = sorted(self._unit_of(variables))
        merged = [self.variables[index] for index in indices]
        for var in merged:
            old = self.groups.get(var)
            if old is not None and old is not group:
                self.members.pop(old, None)
            self.groups[var] = group
        self.members[group] = merged

    def _unit_of(self, variables: Iterable[Var]) -> set[int]:
        """The places of the variables and of all members of their groups."""
        members: set[int] = set()
        for var in variables:
            group = self.groups.get(var)
            members.update(self.place[v] for v in ([var] if group is None else self.members[group]))
        return members
