"""TVM's two functions for Dynamo: ``relax_dynamo`` and ``dynamo_capture_subgraphs``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import fx

from weft.dynamo.backend import make_backend
from weft.ir.module import IRModule
from weft.relax.frontend.torch.capture import capture
from weft.relax.frontend.torch.exported_program import import_exported_program
from weft.support.errors import wrong_type


def relax_dynamo(pipeline: object = None) -> Callable[..., Callable[..., Sequence[torch.Tensor]]]:
    """A backend for ``torch.compile(model, backend=relax_dynamo())``.

    ``pipeline`` is a pass, or the name of a pipeline of passes; None is weft's own.
    """
    return make_backend("weft" if pipeline is None else pipeline)


def dynamo_capture_subgraphs(model: object, *params: object, **kwargs: object) -> IRModule:
    """The graphs into which ``torch.compile`` splits a model on these inputs, as one module.

    Its functions are ``subgraph_0``, ``subgraph_1`` ...; ``keep_params_as_input=True`` makes
    weights inputs (their values are in the attribute ``params``).
    """
    if not callable(model):
        raise wrong_type(
            "dynamo_capture_subgraphs: expected a torch.nn.Module or a function", model
        )
    keep = bool(kwargs.pop("keep_params_as_input", False))
    mod = IRModule()

    def keep_graph(graph_module: fx.GraphModule, example_inputs: Sequence[object]) -> object:
        bound = _WithWeights(graph_module, example_inputs)
        program = capture(bound, bound.inputs)
        imported = import_exported_program(
            program, keep_params_as_input=keep, unwrap_unit_return_tuple=True
        ).mod
        name = f"subgraph_{len(mod.get_global_vars())}"
        mod[name] = imported["main"].with_attr("global_symbol", name)
        return graph_module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=keep_graph, dynamic=False)(*params, **kwargs)
    return mod


class _WithWeights(torch.nn.Module):
    """Wraps a graph of Dynamo, which takes the model's weights as inputs, and holds the weights."""

    def __init__(self, graph_module: fx.GraphModule, example_inputs: Sequence[object]) -> None:
        super().__init__()
        self.graph_module = graph_module
        names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
        self._order: list[str | None] = []
        self.inputs: list[torch.Tensor] = []
        for name, value in zip(names, example_inputs, strict=True):
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(name, value)
            elif "_buffers_" in name:
                self.register_buffer(name, value)
            else:
                self.inputs.append(value)
            self._order.append(None if value is self._last_input() else name)

    def _last_input(self) -> object:
        return self.inputs[-1] if self.inputs else None

    def forward(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        """The graph on the model's inputs and its own weights."""
        given = iter(inputs)
        results: Sequence[torch.Tensor] = self.graph_module(
            *(next(given) if name is None else getattr(self, name) for name in self._order)
        )
        return results
