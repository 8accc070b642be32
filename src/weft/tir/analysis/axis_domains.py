"""Checks that axes of blocks stay in their domains: ``T.axis.spatial(4, j)`` with j up to 7 do not.

A schedule relies on the domain of an axis, but the loops determine its values; if they disagree, a
schedule may change what the program computes. A fault is an iteration, given by the values of the
loops, in which a block runs and one of its axes has a value outside of its domain. Conditions
around the block and its predicate are taken into account. A value that depends on data, parameters
or symbolic extents is not reported. (It is not tested at run time either; each access to a buffer
is.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from weft.arith import fold
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.support.span import Span
from weft.tir.analysis.integer_values import UnknownValueError, values_of
from weft.tir.expr import Add, BinaryExpr, FloorDiv, FloorMod, IterVar, Max, Min, Mul, Sub, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import AssertStmt, AttrStmt, Block, BlockRealize, For, IfThenElse, LetStmt, While

Interval = tuple[int, int]
"""The least and the greatest value."""
MOST_POINTS: Final = 1 << 13
"""The most iterations to test for one axis; if there are more, only the ends of each loop are."""


class AxisDomainError(IRValueError):
    """An axis of a block takes a value outside of its domain; ``span`` is its source position."""

    span: Span | None = None


@dataclass(frozen=True)
class _Definition:
    """A variable from ``low`` to ``low + extent - 1``; without an extent it is just ``low``."""

    var: Var
    low: PrimExpr
    extent: PrimExpr | None


@dataclass
class _Context:
    """The variables and conditions around a statement, outermost first."""

    definitions: list[_Definition] = field(default_factory=list)
    conditions: list[PrimExpr] = field(default_factory=list)


class _AxisVisitor(Visitor):
    """Raises AxisDomainError at the first axis that leaves its domain."""

    def __init__(self) -> None:
        self.context = _Context()
        self.intervals: dict[Var, Interval] = {}

    @contextmanager
    def defined(self, var: Var, low: PrimExpr, extent: PrimExpr | None) -> Iterator[None]:
        """A scope in which ``var`` runs from ``low``, over ``extent`` values (None: only one)."""
        self.context.definitions.append(_Definition(var, low, extent))
        interval = _interval(low, self.intervals)
        if interval is not None and extent is not None:
            size = _interval(extent, self.intervals)
            interval = None if size is None else (interval[0], interval[1] + max(size[1], 1) - 1)
        if interval is not None:
            self.intervals[var] = interval
        yield
        self.context.definitions.pop()

    @contextmanager
    def under(self, condition: PrimExpr) -> Iterator[None]:
        """A scope in which ``condition`` holds."""
        self.context.conditions.append(condition)
        yield
        self.context.conditions.pop()

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        """Expressions hold no blocks."""

    def visit_For(self, node: For) -> None:
        if isinstance(node.extent, IntImm) and node.extent.value <= 0:
            return
        with self.defined(node.loop_var, node.min, node.extent):
            binding = node.thread_binding
            if binding is None or binding.var is node.loop_var:
                self.visit(node.body)
            else:
                with self.defined(binding.var, node.loop_var, None):
                    self.visit(node.body)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if isinstance(node.node, IterVar):
            with self.defined(node.node.var, fold.const(node.value.dtype, 0), node.value):
                self.visit(node.body)
        else:
            self.visit(node.body)

    def visit_LetStmt(self, node: LetStmt) -> None:
        with self.defined(node.var, node.value, None):
            self.visit(node.body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        with self.under(node.condition):
            self.visit(node.then_case)
        if node.else_case is not None:
            with self.under(fold.not_(node.condition)):
                self.visit(node.else_case)

    def visit_While(self, node: While) -> None:
        with self.under(node.condition):
            self.visit(node.body)

    def visit_AssertStmt(self, node: AssertStmt) -> None:
        with self.under(node.condition):
            self.visit(node.body)

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        block = node.block
        with self.under(node.predicate):
            for axis, value in zip(block.iter_vars, node.iter_values, strict=True):
                self.check(block, axis, value)
        with ExitStack() as scope:
            for axis, value in zip(block.iter_vars, node.iter_values, strict=True):
                scope.enter_context(self.defined(axis.var, value, None))
            scope.enter_context(self.under(node.predicate))
            self.visit(block.body)
            if block.init is not None:
                self.visit(block.init)

    def check(self, block: Block, axis: IterVar, value: PrimExpr) -> None:
        if axis.dom is None or self.is_whole_loop(axis, value) or self.is_bounded(axis, value):
            return
        parts = (axis.dom.min, axis.dom.extent, value)
        try:
            points = _points(self.context, parts)
            low, extent, taken = [
                np.broadcast_to(values_of(part, points.__getitem__), points.count) for part in parts
            ]
        except (UnknownValueError, KeyError):
            return
        outside = (taken < low) | (taken >= low + extent)
        if outside.any():
            first = int(np.argmax(outside))
            raise _fault(block, axis, value, (low, extent, taken), points.text(first), first)

    def is_whole_loop(self, axis: IterVar, value: PrimExpr) -> bool:
        """Whether the binding is a loop variable with the same range as the axis."""
        for definition in reversed(self.context.definitions):
            if definition.var is value:
                dom = axis.dom
                return (
                    dom is not None
                    and definition.extent is not None
                    and _is_same(definition.low, dom.min)
                    and _is_same(definition.extent, dom.extent)
                )
        return False

    def is_bounded(self, axis: IterVar, value: PrimExpr) -> bool:
        """Whether the loops' ranges, without any condition, keep the binding in the domain."""
        dom = axis.dom
        if dom is None or not (isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)):
            return False
        interval, low = _interval(value, self.intervals), dom.min.value
        return interval is not None and low <= interval[0] and interval[1] < low + dom.extent.value


def _interval(
    expr: PrimExpr, known: Mapping[Var, Interval], parts: dict[int, Interval | None] | None = None
) -> Interval | None:
    """The least and the greatest value that an expression may have; None if they are not known.

    ``parts`` holds the results for subexpressions, which may be shared.
    """
    if isinstance(expr, IntImm):
        return expr.value, expr.value
    if type(expr) is Var:
        return known.get(expr)
    kind = type(expr)
    if not isinstance(expr, BinaryExpr) or kind not in _INTERVALS:
        return None
    parts = {} if parts is None else parts
    if id(expr) not in parts:
        a, b = _interval(expr.a, known, parts), _interval(expr.b, known, parts)
        parts[id(expr)] = None if a is None or b is None else _INTERVALS[kind](a, b)
    return parts[id(expr)]


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return (a[0] // b[0], a[1] // b[0]) if b[0] == b[1] > 0 else None


def _rest(a: Interval, b: Interval) -> Interval | None:
    if not b[0] == b[1] > 0:
        return None
    same = a[0] // b[0] == a[1] // b[0]
    return (a[0] % b[0], a[1] % b[0]) if same else (0, b[0] - 1)


_INTERVALS: Final[dict[type, Callable[[Interval, Interval], Interval | None]]] = {
    Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Mul: _product,
    FloorDiv: _quotient,
    FloorMod: _rest,
    Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def _is_same(a: PrimExpr, b: PrimExpr) -> bool:
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return a is b or structural_equal(a, b)


class _Points(dict[Var, np.ndarray]):
    """The values of variables at ``count`` iterations, all of which satisfy the conditions."""

    count = 1
    loops: tuple[Var, ...] = ()

    def text(self, index: int) -> str:
        """The values of the loops at a point: ``i = 0, j = 4``."""
        return ", ".join([f"{var.name} = {int(self[var][index])}" for var in self.loops])


def _points(context: _Context, expressions: Sequence[PrimExpr]) -> _Points:
    """The iterations that may influence the values of ``expressions``.

    Raises:
        UnknownValueError: a condition or extent is known at run time only, or there are too many
            loops.
        KeyError: a variable is known at run time only.
    """
    conditions = [c for c in context.conditions if not isinstance(c, IntImm) or not c.value]
    needed = _needed(context.definitions, [*expressions, *conditions])
    points = _spread(needed, ends_only=False) or _spread(needed, ends_only=True)
    if points is None:
        raise UnknownValueError
    holds = np.ones(points.count, bool)
    for condition in conditions:
        holds &= np.asarray(values_of(condition, points.__getitem__)).astype(bool)
    if not holds.all():
        _keep(points, np.flatnonzero(holds))
    return points


def _needed(
    definitions: Sequence[_Definition], expressions: Sequence[PrimExpr]
) -> list[_Definition]:
    """The definitions that the values of ``expressions`` depend on, outermost first."""
    wanted = set(collect(list(expressions), Var))
    needed = []
    for definition in reversed(definitions):
        if definition.var in wanted:
            needed.append(definition)
            wanted.update(collect([definition.low], Var))
            if definition.extent is not None:
                wanted.update(collect(definition.extent, Var))
    return needed[::-1]


def _spread(definitions: Sequence[_Definition], *, ends_only: bool) -> _Points | None:
    """All iterations of the loops (or those at the ends of each); None if there are too many."""
    points = _Points()
    for definition in definitions:
        low = np.broadcast_to(values_of(definition.low, points.__getitem__), points.count)
        if definition.extent is None:
            points[definition.var] = low
            continue
        extent = values_of(definition.extent, points.__getitem__)
        size = np.maximum(np.broadcast_to(extent, points.count), 0)
        count = np.minimum(size, 2) if ends_only else size
        total = int(count.sum())
        if total > MOST_POINTS:
            return None
        chosen = np.repeat(np.arange(points.count), count)
        steps = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        if ends_only:
            steps = np.where(steps, size[chosen] - 1, 0)
        _keep(points, chosen)
        points[definition.var] = low[chosen] + steps
        points.loops = (*points.loops, definition.var)
    return points


def _keep(points: _Points, chosen: np.ndarray) -> None:
    for var, values in points.items():
        points[var] = values[chosen]
    points.count = len(chosen)


def _fault(
    block: Block,
    axis: IterVar,
    value: PrimExpr,
    numbers: Sequence[np.ndarray],
    where: str,
    first: int,
) -> AxisDomainError:
    low, extent, taken = [values[first] for values in numbers]
    least, most = numbers[2].min(), numbers[2].max()
    domain = f"{low} to {low + extent - 1}" if extent > 0 else "empty"
    if isinstance(value, IntImm):
        advice = "T.axis.spatial and T.axis.reduce take the extent first: are the two swapped?"
    elif least >= 0:
        advice = (
            f"give the axis the extent {most + 1}, or let the block run only inside, as by "
            f"T.where({value} < {low + extent})"
        )
    else:
        advice = f"give the axis the domain ({least}, {most + 1}), or bound it with T.where"
    error = AxisDomainError(
        f"the domain of axis {axis.var.name} in block {block.name_hint!r} is {domain}, but its "
        f"binding {value} goes from {least} to {most}{f' ({taken} at {where})' if where else ''}; "
        f"{advice}"
    )
    error.span = axis.span
    return error


@deep_recursion
def check_axis_domains(program: PrimFunc | IRModule) -> None:
    """Raise AxisDomainError for an axis of a block whose binding leaves its domain.

    >>> from weft.script import tir as T
    >>> @T.prim_func(check_well_formed=False)
    ... def f(A: T.Buffer((8,), "float32")):
    ...     for j in range(8):
    ...         with T.block("b"):
    ...             vj = T.axis.spatial(4, j)
    ...             A[vj] = 0.0
    >>> check_axis_domains(f)
    Traceback (most recent call last):
    ...
    weft.tir.analysis.axis_domains.AxisDomainError: the domain of axis vj in block 'b' is 0 to 3, \
but its binding j goes from 0 to 7 (4 at j = 4); give the axis the extent 8, or let the block run \
only inside, as by T.where(j < 4)
    """
    functions = program.functions.values() if isinstance(program, IRModule) else (program,)
    for func in functions:
        if isinstance(func, PrimFunc):
            _AxisVisitor().visit(func.body)
