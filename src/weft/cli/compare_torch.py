"""Runs a model in PyTorch, with every intermediate tensor (for ``weft compare``)."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

from weft.cli.compare import Trace
from weft.cli.models import Subject
from weft.cli.ops import exported
from weft.relax.frontend.torch.constants import as_ndarray
from weft.relax.frontend.torch.exported_program import (
    decompose,
    import_exported_program,
    import_intermediates,
    tensor_nodes,
)
from weft.relax.frontend.torch.operators import CONVERTERS
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.translate import source_place


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps the values of its nodes."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.values: dict[fx.Node, object] = {}

    def run_node(self, n: fx.Node) -> object:
        result = super().run_node(n)
        if isinstance(result, torch.Tensor):
            self.values[n] = result.detach().clone()
        return result


def trace_of(subject: Subject) -> Trace:
    """The trace of a PyTorch module on its example inputs."""
    program = exported(subject)
    decomposed = decompose(program, CONVERTERS)
    args, kwargs = program.example_inputs
    recorder = _Recorder(decomposed.graph_module)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = decomposed._graph_module_flat_inputs(args, kwargs)
        results = recorder.run(*flat)
    nodes = tensor_nodes(decomposed)
    return Trace(
        [(f"{node.name} = {overload_name(node.target)}", source_place(node)) for node in nodes],
        [_array(recorder.values[node]) for node in nodes],
        import_intermediates(decomposed).mod,
        import_exported_program(program).mod,
        [_array(value) for value in results if isinstance(value, torch.Tensor)],
        [
            _array(value)
            for value in pytree.tree_leaves((args, kwargs))
            if isinstance(value, torch.Tensor)
        ],
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor as a numpy array; bfloat16 is supported too."""
    return as_ndarray(tensor).numpy()
