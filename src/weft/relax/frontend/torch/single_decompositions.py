"""Operators without a converter, decomposed one by one at their places in a captured graph.

``run_decompositions`` traces a whole program again for the sake of a single operator: of every
causal language model of transformers for one ``diff``. Here torch traces only the operators in
question, on the stand-ins for tensors that torch.export keeps beside each node.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Final

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from weft.relax.frontend.torch.capture import EXPORTING
from weft.relax.frontend.torch.kept_tensors import copied_graph
from weft.relax.frontend.torch.operator_list import operators_listed_once
from weft.relax.frontend.torch.own_decompositions import with_own_decompositions
from weft.relax.frontend.torch.registry import Converter, overload_name
from weft.relax.frontend.torch.translate import is_known

_PLACES: Final = ("stack_trace", "nn_module_stack")
"""What a node says about its origin, which the nodes in its stead say, too."""
Decompositions = dict[torch._ops.OperatorBase, Callable[..., object]]


def decomposed_one_by_one(
    graph_module: fx.GraphModule, converters: Mapping[str, Converter]
) -> fx.GraphModule:
    """The graph with each operator that has no converter replaced by those that torch makes of it.

    It is the graph itself where there is none, and where one of them changes a tensor, or gives
    results of which only the data tell the sizes.
    """
    missing = [
        place
        for place, node in enumerate(graph_module.graph.nodes)
        if node.op == "call_function" and not is_known(node, converters)
    ]
    if not missing:
        return graph_module
    graph = copied_graph(graph_module)
    nodes = [*graph.nodes]
    with EXPORTING, warnings.catch_warnings(), operators_listed_once(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch's own deprecations
        table = decompositions_but(converters)
        for place in missing:
            if not _replaced(nodes[place], table):
                return graph_module
    return fx.GraphModule(graph_module, graph)


def decompositions_but(converters: Mapping[str, Converter]) -> Decompositions:
    """Decompositions of the operators that have no converter: torch's, and those it lacks."""
    table = torch.export.default_decompositions()
    for overload in list(table.keys()):
        if overload_name(overload) in converters:
            table.pop(overload)
    return with_own_decompositions(dict(table), converters)


def _replaced(node: fx.Node, table: Decompositions) -> bool:
    """Put the decomposition of a node into its graph; False where that cannot be done."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
        return False
    if free_unbacked_symbols(node.meta.get("val")):
        return False
    part = _traced(node, table)
    if _writes(part):
        part = _traced(node, table, functional=True)
    if any(item.op == "get_attr" for item in part.nodes):
        return False
    with node.graph.inserting_before(node):
        result = node.graph.graph_copy(part, _inputs_of(part, node))
    results = [new for new in pytree.tree_leaves(result) if isinstance(new, fx.Node)]
    for new in results:
        new.meta.update({key: node.meta[key] for key in _PLACES if key in node.meta})
    given = set(node.all_input_nodes)
    if not _redirected(node, result):
        return False
    for new in dict.fromkeys(results):
        if not new.users and new not in given:
            node.graph.erase_node(new)  # a converter may refuse a result only if it is read
    return True


def _inputs_of(part: fx.Graph, node: fx.Node) -> dict[fx.Node, fx.Node]:
    """The nodes that stand for the placeholders of a node's decomposition."""
    placeholders = [item for item in part.nodes if item.op == "placeholder"]
    return dict(zip(placeholders, node.all_input_nodes, strict=True))


def _writes(part: fx.Graph) -> bool:
    """Whether a graph writes to tensors."""
    calls = [node.target for node in part.nodes if isinstance(node.target, torch._ops.OpOverload)]
    return any(target._schema.is_mutable for target in calls)


def _traced(node: fx.Node, table: Decompositions, functional: bool = False) -> fx.Graph:
    """What torch makes of one call, as a graph whose placeholders are the node's input nodes.

    ``functional``: without operators that write, as torch makes of recurrent cells.
    """

    def call(*values: object) -> object:
        given = dict(zip(node.all_input_nodes, values, strict=True))
        args, kwargs = fx.map_arg((node.args, node.kwargs), given.__getitem__)
        return node.target(*args, **kwargs)

    traced = dispatch_functionalize(call, FunctionalTensorMode()) if functional else call
    values = [item.meta["val"] for item in node.all_input_nodes]
    mode = detect_fake_mode([*values, node.meta.get("val")])
    with mode or nullcontext(), enable_python_dispatcher():
        graph = make_fx(traced, decomposition_table=table)(*values).graph
    graph.eliminate_dead_code()
    return graph


def _redirected(node: fx.Node, result: object) -> bool:
    """Let the readers of a node read its decomposition's results."""
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    elif isinstance(result, list | tuple):
        for user in list(node.users):
            if user.target is not operator.getitem:
                return False
            user.replace_all_uses_with(result[user.args[1]])
            user.graph.erase_node(user)
    else:
        return False
    node.graph.erase_node(node)
    return True
