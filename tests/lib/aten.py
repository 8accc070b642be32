"""One operator of ATen through the importer, natively, beside torch.

``check_overload`` makes a graph of one call, as torch.export would leave it; ``check_model`` goes
through torch.export. Both compare shapes, data types and values.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from weft.driver.build import relax_build
from weft.relax.frontend.torch.aten_graph import import_aten_graph
from weft.relax.frontend.torch.capture import capture
from weft.relax.frontend.torch.exported_program import from_exported_program
from weft.relax.frontend.torch.fallback import find_overload
from weft.runtime.device import Device
from weft.runtime.ndarray import array
from weft.runtime.vm.virtual_machine import VirtualMachine

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-10}


class Model(torch.nn.Module):
    """A function of tensors as a model."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def fake_mode() -> FakeTensorMode:
    """A mode for tensors of constant extents; results whose size depends on data get symbols."""
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)


def graph_of(overload: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> fx.GraphModule:
    """The graph of one call: a placeholder for each tensor among the arguments."""
    graph = fx.Graph()
    mode = fake_mode()

    def placeholder(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(graph.nodes)}")
        node.meta["val"] = mode.from_tensor(value)
        return node

    def fake(value: Any) -> Any:
        return value.meta["val"] if isinstance(value, fx.Node) else value

    nodes = pytree.tree_map(placeholder, (list(args), kwargs))
    call = graph.call_function(overload, tuple(nodes[0]), nodes[1])
    with mode:
        call.meta["val"] = overload(
            *pytree.tree_map(fake, nodes[0], is_leaf=lambda x: isinstance(x, fx.Node)),
            **pytree.tree_map(fake, nodes[1], is_leaf=lambda x: isinstance(x, fx.Node)),
        )
    result = call.meta["val"]
    if isinstance(result, list | tuple):
        items = []
        for i, item in enumerate(result):
            if item is not None:
                node = graph.call_function(operator.getitem, (call, i))
                node.meta["val"] = item
                items.append(node)
        graph.output(tuple(items))
    else:
        graph.output((call,))
    return fx.GraphModule(torch.nn.Module(), graph)


def run_graph(graph_module: fx.GraphModule, tensors: Sequence[torch.Tensor]) -> list[Any]:
    """The results of a graph through weft, as numpy arrays."""
    imported = import_aten_graph(graph_module)
    machine = VirtualMachine(relax_build(imported.mod), Device(1, 0))
    inputs = [array(tensor.detach().contiguous()) for tensor in tensors]
    return [as_numpy(value) for value in machine["main"](*inputs)]


def as_numpy(value: Any) -> Any:
    """A tensor of any side as a numpy array."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().contiguous()
        return array(value).numpy()
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def assert_same(found: Any, expected: Any, what: str = "") -> None:
    """Equal shape, data type and values, up to rounding at the scale of the expected array."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, torch {expected.shape}"
    assert found.dtype == expected.dtype, f"{what}: dtype {found.dtype}, torch {expected.dtype}"
    tolerance = TOLERANCE.get(str(expected.dtype))
    if tolerance is None:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    found, expected = found.astype("float64"), expected.astype("float64")
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True, err_msg=what
    )


def check_overload(name: str, *args: Any, **kwargs: Any) -> None:
    """One call of an overload by its name (``"aten.add.Tensor"``) in weft and in torch."""
    overload = find_overload(name)
    tensors = [x for x in pytree.tree_leaves((list(args), kwargs)) if isinstance(x, torch.Tensor)]
    graph = graph_of(overload, args, kwargs)
    found = run_graph(graph, tensors)
    expected = overload(*args, **kwargs)
    expected = [e for e in pytree.tree_leaves(expected) if e is not None]
    assert len(found) == len(expected)
    for mine, its in zip(found, expected, strict=True):
        assert_same(mine, as_numpy(its), name)


def check_model(
    model: torch.nn.Module, *args: Any, dynamic_shapes: Any = None, others: Sequence[Any] = ()
) -> None:
    """A model through torch.export, on its example inputs and on ``others`` (of other sizes)."""
    model = model.eval()
    mod = from_exported_program(capture(model, args, None, dynamic_shapes))
    machine = VirtualMachine(relax_build(mod), Device(1, 0))
    for inputs in (args, *others):
        tensors = [x for x in pytree.tree_leaves(list(inputs)) if isinstance(x, torch.Tensor)]
        found = machine["main"](*[array(t.detach().contiguous()) for t in tensors])
        with torch.no_grad():
            expected = [
                x for x in pytree.tree_leaves(model(*inputs)) if isinstance(x, torch.Tensor)
            ]
        for mine, its in zip(found, expected, strict=True):
            assert_same(as_numpy(mine), as_numpy(its), type(model).__name__)
