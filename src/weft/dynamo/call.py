"""One compiled ATen graph as torch calls it: flat tensors and sizes in, flat tensors out."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from weft.driver.build import relax_build
from weft.driver.pipeline import Pipeline
from weft.dynamo.layout import layout_of
from weft.dynamo.views import Views
from weft.relax.frontend.torch.aten_graph import ImportedGraph, is_token
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.signature import Parameter, Signature
from weft.target.target import TargetLike


class GraphCall:
    """Calls ``main`` of an imported graph; arguments and results share memory with torch's tensors.

    Complex ones do not: they are passed as their real and imaginary parts. Results are laid out as
    torch deduced.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        imported: ImportedGraph,
        pipeline: Pipeline,
        target: TargetLike | None,
    ) -> None:
        nodes = list(graph_module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        self._taken = tuple(
            isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt) and not is_token(node)
            for node in placeholders
        )
        names = [parameter.name_hint for parameter in imported.mod["main"].params]
        self._places = imported.results
        places = [("leaf", i) for i in range(sum(map(len, self._places)))]
        signature = Signature(
            "a graph of torch.compile",
            tuple(Parameter(name, ("leaf", i), "position") for i, name in enumerate(names)),
            tuple(names),
            ("list", tuple(places)),
            source="torch",
            unpacked=True,
        )
        self._model = CompiledModel(relax_build(imported.mod, target, None, pipeline), signature)
        results = nodes[-1].args[0]
        results = results if isinstance(results, list | tuple) else (results,)
        self._views = Views(graph_module, results)
        fakes = [item.meta.get("val") if isinstance(item, fx.Node) else None for item in results]
        layouts = [layout_of(fake) if torch.is_tensor(fake) else None for fake in fakes]
        self._laid_out = tuple(
            (index, layout) for index, layout in enumerate(layouts) if layout is not None
        )

    def __call__(self, *args: object) -> list[torch.Tensor]:
        """The graph's results, in order; None where the graph gives None."""
        taken = (arg for arg, is_taken in zip(args, self._taken, strict=True) if is_taken)
        parts = self._model(*(part for arg in taken for part in _parts(arg)))
        results = [_joined([parts[i] for i in places]) for places in self._places]
        for index, layout in self._laid_out:
            results[index] = layout.of(results[index])
        self._views.put_into(results, args)
        return results


def _parts(arg: object) -> tuple[object, ...]:
    """What is passed for an argument of the graph: two tensors for a complex one."""
    if isinstance(arg, torch.Tensor) and arg.is_complex():
        return tuple(
            part.contiguous() for part in torch.view_as_real(arg.resolve_conj()).unbind(-1)
        )
    return (arg,)


def _joined(parts: list[torch.Tensor]) -> Any:
    """A result of the graph: None has no part, a complex tensor has two."""
    return torch.complex(*parts) if len(parts) > 1 else parts[0] if parts else None
