"""Calls of ATen operators from PyTorch's own samples, checked many at a time.

``record`` runs Python functions of torch and keeps the calls of overloads that they end in.
``check_calls`` puts calls into one graph, so that they share one build.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from weft.driver.build import relax_build
from weft.relax.frontend.torch.aten_graph import import_aten_graph
from weft.relax.frontend.torch.registry import overload_name
from weft.runtime.device import Device
from weft.runtime.ndarray import array
from weft.runtime.vm import VirtualMachine
from weft.testing.aten import as_numpy, assert_same, fake_mode

NUMBERS = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64,
)  # fmt: skip
"""Data types of the calls that are kept."""


@dataclass
class Call:
    """One call of an overload, with the tensors as they were before it."""

    overload: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """``aten.add.Tensor``."""
        return overload_name(self.overload)

    def __str__(self) -> str:
        """The call with shapes and data types in the place of tensors."""
        items = [_text(item) for item in self.args]
        items += [f"{key}={_text(item)}" for key, item in self.kwargs.items()]
        return f"{self.name}({', '.join(items)})"


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"{dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


@dataclass
class _Recorder(TorchDispatchMode):
    """Keeps the calls of the wanted overloads that pass through the dispatcher."""

    wanted: Callable[[str], bool]
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        if self.wanted(overload_name(func)) and all(map(_is_plain, pytree.tree_leaves(args))):
            kept = pytree.tree_map(_copied, (tuple(args), dict(kwargs or {})))
            self.calls.append(Call(func, *kept))
        return func(*args, **(kwargs or {}))


def _is_plain(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype in NUMBERS and value.layout is torch.strided
    return not isinstance(value, complex)


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def record(runs: Iterable[Callable[[], Any]], wanted: Callable[[str], bool]) -> list[Call]:
    """The calls of wanted overloads that the functions make."""
    calls: list[Call] = []
    for run in runs:
        recorder = _Recorder(wanted)
        with torch.no_grad(), recorder:
            run()
        calls += recorder.calls
    return calls


def operator_samples(info: Any, dtype: torch.dtype, most: int) -> Iterator[Callable[[], Any]]:
    """Functions that call an OpInfo of ``op_db`` on its first samples of a data type."""
    for sample in itertools.islice(info.sample_inputs("cpu", dtype), most):

        def run(sample: Any = sample) -> Any:
            return info.op(sample.input, *sample.args, **sample.kwargs)

        yield run


def graph_of_calls(calls: Sequence[Call]) -> fx.GraphModule:
    """One graph of all calls: its results are the tensors that they give, in order."""
    graph = fx.Graph()
    mode = fake_mode()
    made = []

    def placeholder(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(graph.nodes)}")
        node.meta["val"] = mode.from_tensor(value)
        return node

    for call in calls:
        made.append(pytree.tree_map(placeholder, (list(call.args), call.kwargs)))
    outputs: list[fx.Node] = []
    for call, (args, kwargs) in zip(calls, made, strict=True):
        node = graph.call_function(call.overload, tuple(args), kwargs)
        with mode:
            fakes = pytree.tree_map(_fake, (args, kwargs), is_leaf=_is_node)
            if call.overload._schema.is_mutable:
                fakes = pytree.tree_map(_copied, fakes)
            node.meta["val"] = call.overload(*fakes[0], **fakes[1])
        outputs += _results(graph, node)
    graph.output(tuple(outputs))
    return fx.GraphModule(torch.nn.Module(), graph)


def _is_node(value: Any) -> bool:
    return isinstance(value, fx.Node)


def _fake(value: Any) -> Any:
    return value.meta["val"] if isinstance(value, fx.Node) else value


def _results(graph: fx.Graph, node: fx.Node) -> list[fx.Node]:
    value = node.meta["val"]
    if not isinstance(value, list | tuple):
        return [node]
    items = []
    for i, item in enumerate(value):
        if item is not None:
            found = graph.call_function(operator.getitem, (node, i))
            found.meta["val"] = item
            items.append(found)
    return items


def tensors_of(calls: Iterable[Call]) -> list[torch.Tensor]:
    """The tensors among the arguments, in order."""
    leaves = [pytree.tree_leaves((list(call.args), call.kwargs)) for call in calls]
    return [leaf for found in leaves for leaf in found if isinstance(leaf, torch.Tensor)]


def run_calls(calls: Sequence[Call]) -> list[list[Any]]:
    """The results of each call through weft, as numpy arrays."""
    imported = import_aten_graph(graph_of_calls(calls))
    machine = VirtualMachine(relax_build(imported.mod), Device(1, 0))
    arrays = [array(tensor.contiguous()) for tensor in tensors_of(calls)]
    results = iter(machine["main"](*arrays))
    return [[as_numpy(next(results)) for _ in _expected(call)] for call in calls]


def _expected(call: Call) -> list[torch.Tensor]:
    args, kwargs = pytree.tree_map(_copied, (call.args, call.kwargs))
    found = call.overload(*args, **kwargs)
    return [item for item in pytree.tree_leaves(found) if isinstance(item, torch.Tensor)]


def check_calls(calls: Sequence[Call], at_once: int = 24) -> None:
    """Every call gives in weft what it gives in torch."""
    for start in range(0, len(calls), at_once):
        some = calls[start : start + at_once]
        for call, found in zip(some, run_calls(some), strict=True):
            for mine, its in zip(found, _expected(call), strict=True):
                assert_same(mine, as_numpy(its), str(call))
