"""Programs that are imported as torch.export captured them, without ``run_decompositions``.

Decomposing traces the whole program again, which takes longer than the rest of the import. It is
needed where the program changes tensors. Most convolutional networks only do so in a way that
cannot be seen: ``relu_`` of a tensor that was just computed and that nothing else reads, which is
``relu``. Operators without a converter are decomposed one by one (``single_decompositions.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch import fx

from weft.relax.frontend.torch.registry import Converter, overload_name
from weft.relax.frontend.torch.translate import missing_operators

_SYMBOLS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)
_TRAINING: Final = frozenset({"train", "training", "use_input_stats", "is_training"})
"""Arguments under which an operator changes running statistics, or draws numbers."""
_IDLE: Final = frozenset(
    {"dropout_", "alpha_dropout_", "feature_dropout_", "feature_alpha_dropout_"}
)
"""Operators that work in place and, unless they train, change nothing, as ``dropout``."""


def converters_as_captured(
    graph_module: fx.GraphModule, converters: Mapping[str, Converter]
) -> dict[str, Converter] | None:
    """The converters that translate a graph as it was captured; None if it must be decomposed.

    For each operator that works in place (``aten.relu_.default``) there is the converter of the one
    that does not, where the tensor was computed for it alone.
    """
    nodes = graph_module.graph.nodes
    if any(node.op == "get_attr" for node in nodes):
        return None  # graphs within the graph, of control flow or of autocast
    in_place: dict[str, Converter] = {}
    fresh: set[fx.Node] = set()
    for node in nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), _SYMBOLS):
            return None
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        if _trains(node):
            return None
        if node.target._schema.is_mutable:
            idle = node.target.overloadpacket.__name__ in _IDLE
            pure = "aten.dropout.default" if idle else _without_mutation(node.target)
            converter = converters.get(pure)
            owned = _is_only_reader(node, fresh) and _keeps_type(node)
            if converter is None or not (owned or idle):
                return None
            in_place[overload_name(node.target)] = converter
            if owned:
                fresh.add(node)
        elif _is_fresh(node.target):
            fresh.add(node)
    captured = {**converters, **in_place}
    return None if missing_operators(graph_module, captured) else captured


def _without_mutation(operator: torch._ops.OpOverload) -> str:
    """``aten.add_.Tensor`` → ``aten.add.Tensor``; empty for what changes more than its input."""
    arguments = operator._schema.arguments
    written = [item.alias_info is not None and item.alias_info.is_write for item in arguments]
    namespace, _, rest = overload_name(operator).partition(".")
    name, _, overload = rest.partition(".")
    is_in_place = name.endswith("_") and written == [True] + [False] * (len(arguments) - 1)
    return f"{namespace}.{name[:-1]}.{overload}" if is_in_place else ""


def _is_only_reader(node: fx.Node, fresh: set[fx.Node]) -> bool:
    """Whether the first argument was computed for this node alone."""
    target = node.args[0] if node.args else None
    return isinstance(target, fx.Node) and target in fresh and list(target.users) == [node]


def _keeps_type(node: fx.Node) -> bool:
    """Whether all tensors have the type of the one that is written, to which a result is cast."""
    values = [argument.meta.get("val") for argument in node.all_input_nodes]
    types = {value.dtype for value in (*values, node.meta.get("val")) if torch.is_tensor(value)}
    return len(types) == 1


def _is_fresh(operator: torch._ops.OpOverload) -> bool:
    """Whether an operator's result is new memory: it shares none with an argument.

    Composite operators of torch may return their input, as ``reshape`` and ``dropout`` do, though
    their schemas do not say so. Those with weights (convolutions, norms) always compute a tensor.
    """
    schema = operator._schema
    if any(result.alias_info is not None for result in schema.returns):
        return False
    if any(argument.name == "weight" for argument in schema.arguments):
        return True
    composite = "CompositeImplicitAutograd"
    return not torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), composite)


def _trains(node: fx.Node) -> bool:
    """Whether an argument says that the operator is to train, where it would change statistics.

    A norm without running statistics uses those of its input always.
    """
    assert isinstance(node.target, torch._ops.OpOverload)
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    if "running_mean" in names and given.get("running_mean") is None:
        return False
    return any(given.get(name) is True for name in _TRAINING)
