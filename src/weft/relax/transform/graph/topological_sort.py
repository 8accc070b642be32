"""TopologicalSort: puts the bindings of dataflow blocks into another valid order.

Before: ``b1 = f(a); b2 = g(a); c1 = h(b1); c2 = k(b2)``. After (depth first, from the inputs):
``b1 = f(a); c1 = h(b1); b2 = g(a); c2 = k(b2)``, so that a value is used soon after it is computed.

The order is that of a search over the graph of the block. From inputs, it starts at the parameters,
then at variables of earlier blocks, then at bindings without inputs, and visits a binding once all
its inputs are visited. From outputs, it starts at the bindings that later code uses, follows the
edges backwards, and the order is reversed at the end. Ties keep the order of the program. Besides
its uses, a binding needs the match_cast that defines its symbols, and a call that writes in place
comes after all earlier readers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.transform import Pass
from weft.relax.analysis.dependencies import binding_dependencies, operands
from weft.relax.analysis.variables import free_vars
from weft.relax.expr import Binding, BindingBlock, DataflowBlock, Function, SeqExpr, Var
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import PassError

_ENTRY: Final = "entry"
"""The node where the search starts: before all inputs, or after all outputs."""

Edges = dict[Hashable, dict[Hashable, None]]
"""Node -> its neighbours, in order. Nodes are positions in the block, variables, and _ENTRY."""


def _used_vars(value: RelaxExpr) -> list[Var]:
    """The variables that a value uses, in order of use."""
    if isinstance(value, Function):
        return [*free_vars(value)]
    return [leaf for leaf in operands(value) if isinstance(leaf, Var)]


class _OuterUses(PyExprVisitor):
    """The variables used outside of the block that binds them, in order of first use."""

    def __init__(self) -> None:
        self.block: BindingBlock | None = None
        self.home: dict[Var, BindingBlock | None] = {}
        self.found: dict[Var, int] = {}

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        outer = self.block
        for block in op.blocks:
            self.block = block
            self.visit_binding_block(block)
        self.block = None
        self.visit_expr(op.body)
        self.block = outer

    def visit_var_def_(self, var: Var) -> None:
        self.home[var] = self.block

    def visit_var_(self, op: Var) -> None:
        if self.home.get(op) is not self.block:
            self.found.setdefault(op, len(self.found))


class _Graph:
    """The graph of one block: what each binding needs, and which bindings need it."""

    def __init__(self, bindings: Sequence[Binding], params: dict[Var, int], outer: dict[Var, int]):
        self.bindings = bindings
        self.needs: Edges = {}
        self.users: Edges = {}
        place = {binding.var: index for index, binding in enumerate(bindings)}
        inputs: dict[Var, None] = {}
        for index, needed in enumerate(binding_dependencies(bindings)):
            used = _used_vars(bindings[index].value)
            for var in used:
                self.edge(place.get(var, var), index)
                if var not in place:
                    inputs[var] = None
            for earlier in needed:
                self.edge(earlier, index)
        last = len(params)
        for var in sorted(inputs, key=lambda var: params.get(var, last)):
            self.edge(_ENTRY, var)
        for index in range(len(bindings)):
            if index not in self.needs:
                self.edge(_ENTRY, index)
        self.outputs = self.block_outputs(place, outer)

    def edge(self, source: Hashable, target: Hashable) -> None:
        """Add an edge: ``target`` needs ``source``."""
        self.users.setdefault(source, {})[target] = None
        self.needs.setdefault(target, {})[source] = None

    def block_outputs(self, place: dict[Var, int], outer: dict[Var, int]) -> list[int]:
        """The bindings that the block does not use, then those that later code uses, in order."""
        later = sorted((var for var in place if var in outer), key=lambda var: outer[var])
        unused = [
            index
            for index, binding in enumerate(self.bindings)
            if index not in self.users and binding.var not in outer
        ]
        return [*unused, *[place[var] for var in later]]

    def from_inputs(self, depth_first: bool) -> list[int]:
        """The order of a search from the inputs."""
        return _search(self.users, self.needs, depth_first, in_turn=depth_first)

    def from_outputs(self, depth_first: bool) -> list[int]:
        """The reversed order of a search from the outputs."""
        needs: Edges = {
            node: {other: None for other in needed if other is not _ENTRY}
            for node, needed in self.needs.items()
        }
        users = {node: dict(needed) for node, needed in self.users.items() if node is not _ENTRY}
        needs[_ENTRY] = dict.fromkeys(self.outputs)
        for index in self.outputs:
            users.setdefault(index, {})[_ENTRY] = None
        return _search(needs, users, depth_first, in_turn=False)[::-1]


def _search(forward: Edges, backward: Edges, depth_first: bool, in_turn: bool) -> list[int]:
    """The bindings in the order in which a search visits them.

    A node is visited once all its ``backward`` neighbours are. Depth first, a stack takes the
    neighbour that was pushed last; with ``in_turn`` neighbours are pushed in reverse, so that the
    first one is taken.
    """
    missing = {node: len(needed) for node, needed in backward.items()}
    waiting: deque[Hashable] = deque([_ENTRY])
    take: Callable[[], Hashable] = waiting.pop if depth_first else waiting.popleft
    order: list[int] = []
    while waiting:
        node = take()
        if isinstance(node, int):
            order.append(node)
        ready = []
        for neighbour in forward.get(node, ()):
            missing[neighbour] -= 1
            if missing[neighbour] == 0:
                ready.append(neighbour)
        waiting.extend(reversed(ready) if in_turn else ready)
    return order


class _Sorter(PyExprMutator):
    def __init__(self, func: Function, depth_first: bool, from_inputs: bool) -> None:
        super().__init__()
        self.params = {param: index for index, param in enumerate(func.params)}
        self.depth_first, self.from_inputs = depth_first, from_inputs
        uses = _OuterUses()
        uses.visit_expr(func)
        self.outer = uses.found

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        rewritten = super().visit_dataflow_block_(block)
        graph = _Graph(rewritten.bindings, self.params, self.outer)
        search = graph.from_inputs if self.from_inputs else graph.from_outputs
        order = search(self.depth_first)
        if order == [*range(len(rewritten.bindings))]:
            return rewritten
        return DataflowBlock([rewritten.bindings[index] for index in order])


def TopologicalSort(  # noqa: N802 - TVM's name
    order: str = "depth-first", direction: str = "from-inputs"
) -> Pass:
    """The pass that sorts the bindings of dataflow blocks.

    ``order`` is "depth-first" or "breadth-first", ``direction`` "from-inputs" or "from-outputs".
    """
    for what, value, allowed in (
        ("order", order, ("depth-first", "breadth-first")),
        ("direction", direction, ("from-inputs", "from-outputs")),
    ):
        if value not in allowed:
            raise PassError(
                f"TopologicalSort: {what}: expected {allowed[0]!r} or {allowed[1]!r}, got {value!r}"
            )

    def run(func: Function) -> Function:
        sorter = _Sorter(func, order == "depth-first", direction == "from-inputs")
        return sorter.visit_expr(func)

    return define_function_pass("TopologicalSort", run)()
