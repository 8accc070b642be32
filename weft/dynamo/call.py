"""One compiled ATen graph as torch calls it: flat tensors and sizes in, flat tensors out."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from weft.driver.build import relax_build
from weft.relax.frontend.torch.aten_graph import ImportedGraph
from weft.runtime.device import Device
from weft.runtime.ndarray import NDArray, from_dlpack
from weft.runtime.vm import VirtualMachine


class GraphCall:
    """Calls ``main`` of an imported graph; tensors share their memory both ways.

    Results get the strides that torch deduced, since what follows in PyTorch may view them.
    """

    def __init__(
        self, graph_module: fx.GraphModule, imported: ImportedGraph, pipeline: Any, target: Any
    ) -> None:
        executable = relax_build(imported.mod, target, None, pipeline)
        self._main = VirtualMachine(executable, Device(1, 0))["main"]
        self._places = imported.results
        nodes = list(graph_module.graph.nodes)
        self._taken = tuple(
            isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt)
            for node in nodes
            if node.op == "placeholder"
        )
        results = nodes[-1].args[0]
        results = results if isinstance(results, list | tuple) else (results,)
        self._strides = tuple(_strides(result) for result in results)

    def __call__(self, *args: Any) -> list[Any]:
        """The graph's results, in order; None where the graph gives None."""
        inputs = [
            _as_ndarray(arg) for arg, taken in zip(args, self._taken, strict=True) if taken
        ]
        found = self._main(*inputs)
        return [
            None if place is None else _as_torch(found[place], strides)
            for place, strides in zip(self._places, self._strides, strict=True)
        ]


def _strides(result: Any) -> tuple[int, ...] | None:
    """The strides that a result must have; None where any, or compact ones, will do."""
    fake = result.meta.get("val") if isinstance(result, fx.Node) else None
    if not isinstance(fake, torch.Tensor) or fake.is_contiguous():
        return None
    strides = fake.stride()
    return tuple(strides) if all(isinstance(step, int) for step in strides) else None


def _as_ndarray(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return int(value)
    compact = value.detach().contiguous()
    if compact.dtype is torch.bool:
        return NDArray(compact.numpy())
    return from_dlpack(compact)


def _as_torch(value: Any, strides: tuple[int, ...] | None) -> Any:
    if not isinstance(value, NDArray):
        return value
    tensor = torch.from_dlpack(value)
    if strides is None:
        return tensor
    shaped = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    return shaped.copy_(tensor)
