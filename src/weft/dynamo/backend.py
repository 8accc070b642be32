"""The backend that ``torch.compile(model, backend="weft")`` finds through its entry point.

torch's Dynamo guards, splits at graph breaks and chooses symbolic sizes. Its AOTAutograd makes each
graph functional (it replays mutation and aliasing around the graph) and derives the backward graph.
The backend gets a graph of ATen operators on flat arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily

from weft.driver.pipeline import Pipeline, relax_pipeline_of
from weft.dynamo.call import GraphCall
from weft.dynamo.random import GENERATOR
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.relax.frontend.torch.aten_graph import import_aten_graph
from weft.relax.frontend.torch.operators import CONVERTERS
from weft.relax.frontend.torch.own_decompositions import with_own_decompositions
from weft.support.errors import IRTypeError, TVMError, UnsupportedError
from weft.target.target import TargetLike, target_meant

Compiled = Callable[..., Sequence[object]]
"""What torch calls with flat tensors and sizes; it returns the results in order."""


_OPTIONS: Final = frozenset({"relax_pipeline", "target"})


class FallbackWarning(UserWarning):
    """PyTorch runs a sub-graph: which operators weft lacks, and how often they occur."""


def weft_backend(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Compiled:
    """Compile one graph that Dynamo captured.

    ``options`` are those of ``torch.compile(options=...)``: ``target`` and ``relax_pipeline``, as
    ``make_backend`` takes them. A graph that weft cannot take runs in PyTorch, which a
    FallbackWarning says once. Raises IRTypeError for other options, and for a ``mode``.
    """
    unknown = sorted(set(options or {}) - _OPTIONS)
    if unknown or mode is not None:
        choice = f"option {unknown[0]!r}" if unknown else f"mode {mode!r}"
        raise IRTypeError(
            f'torch.compile(backend="weft"): there is no {choice}; there are the options '
            f"{', '.join(sorted(_OPTIONS))}"
        )
    return make_backend(**(options or {}))(graph_module, example_inputs)


def make_backend(relax_pipeline: Any = "weft", target: Any = None) -> Callable[..., Compiled]:
    """A backend with a pipeline and a target of its own, for ``torch.compile(backend=...)``."""
    target_meant(target)  # raises for a wrong target, which else would be a reason to fall back
    relax_pipeline_of(relax_pipeline)

    def compile_graph(graph_module: fx.GraphModule, example_inputs: Sequence[object]) -> Compiled:
        return compile_aten(graph_module, relax_pipeline, target)

    compile_functional: Callable[..., Compiled] = aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=decompositions(),
    )

    def backend(graph_module: fx.GraphModule, example_inputs: Sequence[object]) -> Compiled:
        if any(node.target is torch.Tensor.set_ for node in graph_module.graph.nodes):
            _tell(UnsupportedError("tensor.data = value gives a tensor other memory"))
            unchanged: Compiled = graph_module.forward
            return unchanged
        return compile_functional(graph_module, example_inputs)

    return backend


def decompositions() -> dict[torch._ops.OperatorBase, Callable[..., object]]:
    """Decompositions to core ATen, without those of operators that have a converter."""
    return with_own_decompositions(torch._decomp.core_aten_decompositions(), CONVERTERS)


def compile_aten(
    graph_module: fx.GraphModule, relax_pipeline: Pipeline, target: TargetLike | None
) -> Compiled:
    """The compiled graph; the graph itself, run by PyTorch, where weft cannot take it.

    torch calls this while it traces with stand-ins for tensors; constants of the graph are real.
    """
    try:
        with unset_fake_temporarily():
            imported = import_aten_graph(graph_module, GENERATOR)
            call: Compiled = GraphCall(graph_module, imported, relax_pipeline, target)
    except TVMError as error:
        _tell(error)
        call = graph_module.forward
    boxed: Compiled = make_boxed_func(call)
    return boxed


_told: set[str] = set()


def _tell(error: TVMError) -> None:
    """Warn that PyTorch runs a graph, once for each reason."""
    if isinstance(error, UnsupportedOperatorsError):
        reason = "no converter for " + "; ".join(str(item) for item in error.operators)
    else:
        reason = str(error).splitlines()[0]
    if reason not in _told:
        _told.add(reason)
        warnings.warn(
            f'torch.compile(backend="weft"): a sub-graph runs in PyTorch: {reason}',
            FallbackWarning,
            stacklevel=2,
        )
