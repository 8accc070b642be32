"""The loop nests around the block of a computation.

There is one nest for all axes, unless the range of one depends on another. Such an axis is in an
inner nest, and the outer nest gets a block of its own around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.stmt import Block, BlockRealize


class NestLevel:
    """One nest: its loops, and the axes of the block inside with their bindings.

    ``variables`` maps ``id(axis variable of the operation)`` to the block's variable.
    """

    def __init__(self) -> None:
        self.loops: list[tuple[Var, Range]] = []
        self.iter_vars: list[IterVar] = []
        self.bindings: list[PrimExpr] = []
        self.variables: dict[int, PrimExpr] = {}

    def add(self, axis: IterVar, domain: Range, binding: PrimExpr, iter_type: IterType) -> None:
        """Give the block an axis for ``axis`` of the operation."""
        variable = Var(f"v_{axis.var.name}", axis.var.dtype)
        self.iter_vars.append(IterVar(domain, variable, iter_type, axis.thread_tag))
        self.bindings.append(binding)
        self.variables[id(axis.var)] = variable

    def realize(self, block: Block) -> BlockRealize:
        """The block, bound to the loops."""
        return BlockRealize(self.bindings, IntImm(DataType("bool"), 1), block)

    def with_new_variables(self) -> NestLevel:
        """The same loops with new block variables, for a second block in the nest."""
        other = NestLevel()
        other.loops, other.bindings = self.loops, self.bindings
        fresh: dict[int, Var] = {}
        for iter_var in self.iter_vars:
            variable = Var(iter_var.var.name, iter_var.var.dtype)
            fresh[id(iter_var.var)] = variable
            other.iter_vars.append(
                IterVar(iter_var.dom, variable, iter_var.iter_type, iter_var.thread_tag)
            )
        other.variables = {key: fresh[id(var)] for key, var in self.variables.items()}
        return other


def nest_levels(axes: Sequence[IterVar], lower: Callable[..., PrimExpr]) -> list[NestLevel]:
    """The nests of a computation, outermost first; ``lower(expr, level)`` maps its expressions."""
    groups = _grouped(axes)
    levels: list[NestLevel] = []
    for depth, group in enumerate(groups):
        level = NestLevel()
        for axis in [item for earlier in groups[:depth] for item in earlier]:
            bound = levels[-1].variables[id(axis.var)]
            point = Range.from_min_extent(bound, IntImm(bound.dtype, 1))
            level.add(axis, point, bound, axis.iter_type)
        for axis in group:
            outer = levels[-1] if depth else None
            whole = domain_of(axis)
            minimum, extent = lower(whole.min, outer), lower(whole.extent, outer)
            domain = Range.from_min_extent(minimum, extent)
            loop_var = Var(axis.var.name, axis.var.dtype)
            level.loops.append((loop_var, domain))
            level.add(axis, domain, loop_var, axis.iter_type)
        levels.append(level)
    if not levels:
        levels.append(_scalar_level())
    return levels


def domain_of(axis: IterVar) -> Range:
    """The range of an axis; axes of computations have one."""
    if axis.dom is None:
        raise IRValueError(f"axis {axis.var.name} has no range")
    return axis.dom


def _scalar_level() -> NestLevel:
    """The block of a 0-d tensor has one axis of extent 1."""
    level = NestLevel()
    zero, unit = IntImm(DataType("int32"), 0), IntImm(DataType("int32"), 1)
    variable = Var("vi", "int32")
    level.iter_vars.append(IterVar(Range.from_min_extent(zero, unit), variable, IterType.DataPar))
    level.bindings.append(zero)
    return level


def _grouped(axes: Sequence[IterVar]) -> list[list[IterVar]]:
    """The axes of each nest; an axis is in a later nest than the axes that its range uses."""
    position = {id(axis.var): None for axis in axes}
    depths: dict[int, int] = {}
    groups: list[list[IterVar]] = []
    for axis in axes:
        depth = 0
        whole = domain_of(axis)
        for variable in collect((whole.min, whole.extent), Var):
            if id(variable) in depths:
                depth = max(depth, depths[id(variable)] + 1)
            elif id(variable) in position:
                raise IRValueError(
                    f"the range of axis {axis.var.name} mentions {variable.name}, an axis that "
                    "comes later"
                )
        depths[id(axis.var)] = depth
        while len(groups) <= depth:
            groups.append([])
        groups[depth].append(axis)
    return groups
