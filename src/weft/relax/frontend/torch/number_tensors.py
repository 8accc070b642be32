"""Operators that make tensors of numbers alone: windows, frequencies, grids.

Each of their calls gives the same tensor, so torch computes it once, when the model is imported.
"""

from __future__ import annotations

import torch
from torch import fx

from weft.relax.frontend.torch.complex_tensor import is_complex

_DRAWS = torch.Tag.nondeterministic_seeded


def makes_constant(node: fx.Node) -> bool:
    """Whether a call of ATen takes no tensors and symbols, and gives one real tensor."""
    target, result = node.target, node.meta.get("val")
    return (
        isinstance(target, torch._ops.OpOverload)
        and target.namespace == "aten"
        and not node.all_input_nodes
        and not target._schema.is_mutable
        and _DRAWS not in target.tags
        and isinstance(result, torch.Tensor)
        and not is_complex(result)
    )


def constant_of(node: fx.Node) -> torch.Tensor:
    """The tensor that such a call gives, on the CPU."""
    assert isinstance(node.target, torch._ops.OpOverload)
    keywords = {**node.kwargs, "device": torch.device("cpu")}
    if all(argument.name != "device" for argument in node.target._schema.arguments):
        del keywords["device"]
    result = node.target(*node.args, **keywords)
    assert isinstance(result, torch.Tensor)
    return result
