"""Matching of a graph of patterns over the bindings of a block.

Subgraph isomorphism by backtracking (Ullmann, "An Algorithm for Subgraph Isomorphism", JACM 1976):
the patterns are assigned to different variables one after the other. For a pattern that is linked
to an assigned one, only the arguments or users of that one's variable are candidates (the connected
order of VF2: Cordella et al., "A (Sub)Graph Isomorphism Algorithm", PAMI 2004). In each connected
part, the search starts with the pattern that has the fewest candidates by its root operators.
Backtracking also undoes what the expression matcher has bound, so the search finds a match if
there is one. It is deterministic, and tries earlier bindings first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.relax.analysis.bindings import uses
from weft.relax.dpl.edge import Edge, SameShapeConstraint
from weft.relax.dpl.matcher import Matcher, Pattern, same_expr
from weft.relax.dpl.root import root_callees
from weft.relax.expr import Call, Expr, Function, If, Tuple, TupleGetItem, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import same_dims
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo

_PACKED_ARGUMENTS = frozenset({"relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed"})


def operands(value: RelaxExpr | None) -> Sequence[RelaxExpr]:
    """The operands that an edge's index counts; for call_tir, the arguments of the PrimFunc."""
    if isinstance(value, Call):
        packed = isinstance(value.op, Op) and value.op.name in _PACKED_ARGUMENTS
        if packed and isinstance(value.args[1], Tuple):
            return tuple(value.args[1].fields)
        return tuple(value.args)
    if isinstance(value, Tuple):
        return tuple(value.fields)
    return (value.tuple_value,) if isinstance(value, TupleGetItem) else ()


class _Block:
    """The bindings of a block, indexed by users, by operands and by operator."""

    def __init__(self, values: Mapping[Var, Expr], matcher: Matcher) -> None:
        self.values = values
        self.used: dict[RelaxExpr, list[Var]] = {}
        self.users: dict[RelaxExpr, list[Var]] = {}
        self.by_callee: dict[RelaxExpr, list[Var]] = {}
        nodes: dict[Var, None] = {}
        for var, value in values.items():
            inputs = _inputs(value)
            self.used[var] = inputs
            for used in inputs:
                self.users.setdefault(used, []).append(var)
            nodes.update(dict.fromkeys(inputs))
            nodes[var] = None
            root = matcher.value_of(value)
            if isinstance(root, Call):
                self.by_callee.setdefault(root.op, []).append(var)
        self.nodes = list(nodes)

    def value(self, expr: RelaxExpr) -> Expr | None:
        """The value that a variable is bound to, or None."""
        return self.values.get(expr) if isinstance(expr, Var) else None

    def candidates(self, pattern: Pattern) -> list[Var]:
        """The variables whose value may match, judged by its operator alone."""
        callees = root_callees(pattern)
        if callees is None:
            return self.nodes
        calls = [var for op in callees for var in self.by_callee.get(op, ())]
        if len(callees) == 1:
            return calls
        place = {var: index for index, var in enumerate(self.nodes)}
        return sorted(calls, key=place.__getitem__)


def _inputs(value: Expr) -> list[Var]:
    """The variables that a value uses, each once."""
    if isinstance(value, Function | If):
        return list(uses(value))
    return list(dict.fromkeys(collect(value, Var)))


class _Search:
    """The search for an assignment of variables to the patterns of a context."""

    def __init__(
        self,
        edges: Sequence[Edge],
        same_shapes: Sequence[SameShapeConstraint],
        values: Mapping[Var, Expr],
    ) -> None:
        self.matcher = Matcher(values)
        self.block, self.same_shapes = _Block(values, self.matcher), same_shapes
        self.links: dict[Pattern, list[Edge]] = {}
        for edge in edges:
            self.links.setdefault(edge.producer, []).append(edge)
            self.links.setdefault(edge.consumer, []).append(edge)
        self.assigned: dict[Pattern, RelaxExpr] = {}
        self.taken: set[RelaxExpr] = set()
        self.order = self._order()

    def _order(self) -> list[Pattern]:
        """The patterns in the order of assignment: each linked to an earlier one, if possible."""
        rank = {pattern: index for index, pattern in enumerate(self.links)}
        counts = {pattern: len(self.block.candidates(pattern)) for pattern in self.links}
        order: dict[Pattern, None] = {}
        while len(order) < len(self.links):
            start = min(
                (pattern for pattern in self.links if pattern not in order),
                key=lambda p: (self._feeds(p), counts[p], rank[p]),
            )
            frontier = [start]
            while frontier:
                best = min(frontier, key=lambda p: (not self._fixed(p, order), counts[p], rank[p]))
                order[best] = None
                frontier = [
                    other
                    for other in self.links
                    if other not in order
                    and any(
                        edge.producer in order or edge.consumer in order
                        for edge in self.links[other]
                    )
                ]
        return list(order)

    def _feeds(self, pattern: Pattern) -> bool:
        """Whether another pattern uses this one: its user is assigned first.

        The user's operands then are the candidates, also those that no variable names (constants).
        """
        return any(edge.producer is pattern for edge in self.links[pattern])

    def _fixed(self, pattern: Pattern, order: dict[Pattern, None]) -> bool:
        """Whether the pattern is argument number n of an assigned one: a single candidate."""
        return any(
            edge.producer is pattern and edge.index >= 0 and edge.consumer in order
            for edge in self.links[pattern]
        )

    def run(self, depth: int = 0) -> bool:
        """Assign the patterns from ``depth`` on; returns whether it succeeded."""
        if depth == len(self.order):
            return all(map(self._same_shape, self.same_shapes))
        pattern = self.order[depth]
        for candidate in self._candidates(pattern):
            if candidate in self.taken or not self._edges_hold(pattern, candidate):
                continue
            self.assigned[pattern] = candidate
            if isinstance(candidate, Var):
                self.taken.add(candidate)
            for _ in self.matcher.solutions((pattern, candidate)):
                if self.run(depth + 1):
                    return True
            self.taken.discard(candidate)
            del self.assigned[pattern]
        return False

    def _candidates(self, pattern: Pattern) -> Iterable[RelaxExpr]:
        best: Sequence[RelaxExpr] | None = None
        for edge in self.links[pattern]:
            linked = self._through(edge, pattern)
            if linked is not None and (best is None or len(linked) < len(best)):
                best = linked
        return self.block.candidates(pattern) if best is None else best

    def _through(self, edge: Edge, pattern: Pattern) -> Sequence[RelaxExpr] | None:
        """The candidates that an edge allows; None if its other pattern is not assigned yet."""
        if edge.producer is pattern and edge.consumer in self.assigned:
            consumer = self.assigned[edge.consumer]
            if edge.index < 0:
                return self.block.used.get(consumer, ())
            return operands(self.block.value(consumer))[edge.index : edge.index + 1]
        if edge.consumer is pattern and edge.producer in self.assigned:
            return self.block.users.get(self.assigned[edge.producer], ())
        return None

    def _edges_hold(self, pattern: Pattern, candidate: RelaxExpr) -> bool:
        """Whether the candidate satisfies all edges between the pattern and assigned ones."""
        for edge in self.links[pattern]:
            producer = candidate if edge.producer is pattern else self.assigned.get(edge.producer)
            consumer = candidate if edge.consumer is pattern else self.assigned.get(edge.consumer)
            if producer is not None and consumer is not None:
                if not self._edge_holds(edge, producer, consumer):
                    return False
        return True

    def _edge_holds(self, edge: Edge, producer: RelaxExpr, consumer: RelaxExpr) -> bool:
        if edge.only and len(self.block.users.get(producer, ())) != 1:
            return False
        if edge.index < 0:
            return producer in self.block.used.get(consumer, ())
        inputs = operands(self.block.value(consumer))
        return edge.index < len(inputs) and same_expr(inputs[edge.index], producer)

    def _same_shape(self, constraint: SameShapeConstraint) -> bool:
        shapes = [_dims(self.assigned.get(p, self.matcher.bound.get(p))) for p in constraint.args]
        return all(same_dims(shapes[0], shape) for shape in shapes)


def _dims(expr: RelaxExpr | None) -> Sequence[PrimExpr] | None:
    info = getattr(expr, "struct_info", None)
    if isinstance(info, ShapeStructInfo):
        return info.values
    return tensor_dims(info) if isinstance(info, TensorStructInfo) else None


def match_bindings(
    edges: Sequence[Edge], same_shapes: Sequence[SameShapeConstraint], values: Mapping[Var, Expr]
) -> dict[Pattern, RelaxExpr] | None:
    """The first assignment of the patterns of ``edges`` over bindings, in pattern order."""
    if not edges:
        return None
    search = _Search(edges, same_shapes, values)
    if not search.run():
        return None
    return {pattern: search.assigned[pattern] for pattern in search.links}
