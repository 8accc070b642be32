"""Results of a graph that are parts of its inputs, or of its other results.

torch makes such a result again, from the whole and from where the result begins in it. What weft
computes has memory of its own and begins there, so where a result does not begin with the whole it
is taken by the graph's own operators, which copy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx


class Views:
    """The results of a graph that begin elsewhere than the tensor of which they are parts."""

    def __init__(self, graph_module: fx.GraphModule, results: Sequence[object]) -> None:
        nodes = [item if isinstance(item, fx.Node) else None for item in results]
        chosen = [node for node in nodes if node is not None and _begins_later(node)]
        wholes = [node for node in nodes if node is not None and node not in chosen]
        parts = {node: steps for node in chosen if (steps := _steps(node, wholes)) is not None}
        self._places = [i for i, node in enumerate(nodes) if node in parts]
        self._wholes = [nodes.index(node) for node in dict.fromkeys(wholes)]
        self._graph: fx.GraphModule | None = None
        if parts:
            graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
            for node in graph_module.graph.nodes:
                if node.op == "placeholder":
                    copies[node] = graph.node_copy(node)
            for node in dict.fromkeys(wholes):
                copies[node] = graph.placeholder(f"whole_{node.name}")
            steps = set().union(*parts.values())
            for node in graph_module.graph.nodes:
                if node in steps and node not in copies:
                    copies[node] = graph.node_copy(node, copies.__getitem__)
            graph.output(tuple(copies[nodes[i]] for i in self._places))
            self._graph = fx.GraphModule(graph_module, graph)

    def put_into(self, results: list[torch.Tensor], args: Sequence[object]) -> None:
        """Replace these among the results of a call by views."""
        if self._graph is None:
            return
        with torch.no_grad():
            views = self._graph(*args, *[results[i] for i in self._wholes])
        for place, view in zip(self._places, views, strict=True):
            results[place] = view


def _begins_later(node: fx.Node) -> bool:
    """Whether a tensor's elements begin, or may begin, elsewhere than its memory."""
    value = node.meta.get("val")
    if node.op == "placeholder" or not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    begin = value.storage_offset()
    return not (isinstance(begin, int) and begin == 0)


def _steps(node: fx.Node, wholes: Sequence[fx.Node]) -> set[fx.Node] | None:
    """What computes a tensor as a part of an input or of a whole; None if it has its own memory."""
    memory = _memory(node)
    steps, left = set[fx.Node](), [node]
    while left:
        step = left.pop()
        if step in steps or step.op == "placeholder" or step in wholes:
            continue
        if step.op != "call_function" or _memory(step) not in (None, memory):
            return None
        steps.add(step)
        left += step.all_input_nodes
    return steps


def _memory(node: fx.Node) -> int | None:
    """The identity of a tensor's memory; None for a number."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None
