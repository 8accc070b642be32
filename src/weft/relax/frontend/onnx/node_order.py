"""The order in which the nodes of a graph are translated: each after those whose results it takes.

ONNX asks for this order in the file. ONNX Runtime does not insist on it, so there are files in
another: some converters write a node before what it reads, or all nodes backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from weft.relax.frontend.onnx.checks import sub_graphs
from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.relax.frontend.onnx.protos import GraphProto, NodeProto


def in_order(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """The nodes, each behind those that it needs; those that stand so already are returned.

    Of nodes that may come next, the first in the file does. Raises OnnxModelError where nodes need
    each other.
    """
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in _names_read(node) if name in makers} for node in nodes]
    if all(max(needed, default=-1) < place for place, needed in enumerate(needs)):
        return nodes
    return [nodes[place] for place in _sorted_places(nodes, needs)]


def _sorted_places(nodes: Sequence[NodeProto], needs: Sequence[set[int]]) -> Iterator[int]:
    sorter = TopologicalSorter(dict(enumerate(needs)))
    try:
        sorter.prepare()
    except CycleError as error:
        node = nodes[error.args[1][0]]
        raise OnnxModelError(
            f"{node.op_type} node {node.name!r} (output {next(iter(node.output), '')!r}) needs its "
            "own result, through other nodes or at once, so it can never be computed"
        ) from None
    ready = list(sorter.get_ready())
    heapify(ready)
    while ready:
        place = heappop(ready)
        yield place
        sorter.done(place)
        for following in sorter.get_ready():
            heappush(ready, following)


def _names_read(node: NodeProto) -> Iterator[str]:
    """The names of the graph around a node that the node, or a graph inside of it, reads."""
    yield from node.input
    for graph in sub_graphs(node):
        yield from _names_of_outside(graph)


def _names_of_outside(graph: GraphProto) -> Iterator[str]:
    inside = {item.name for item in graph.input} | {item.name for item in graph.initializer}
    inside.update([name for node in graph.node for name in node.output])
    for node in graph.node:
        yield from [name for name in _names_read(node) if name not in inside]
    yield from [item.name for item in graph.output if item.name not in inside]
