"""Calls of ATen operators from PyTorch's own samples, checked many at a time.

``record`` runs Python functions of torch and keeps the calls of overloads that they end in.
``check_calls`` puts calls into one graph, so that they share one build.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from tests.lib.aten import as_numpy, assert_same, fake_mode
from weft.driver.build import relax_build
from weft.relax.frontend.torch.aten_graph import import_aten_graph
from weft.relax.frontend.torch.complex_tensor import is_complex
from weft.relax.frontend.torch.fallback import find_overload
from weft.relax.frontend.torch.registry import overload_name
from weft.runtime.device import Device
from weft.runtime.ndarray import array
from weft.runtime.vm.virtual_machine import VirtualMachine

NUMBERS = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64,
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

    @property
    def is_complex(self) -> bool:
        """Whether it takes complex numbers."""
        return any(map(is_complex, pytree.tree_leaves((self.args, self.kwargs))))

    @property
    def size(self) -> int:
        """The number of elements that its tensors have."""
        return sum(tensor.numel() for tensor in tensors_of([self]))

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
            # a copy has no storage beside its elements, which is what as_strided may look at
            if "as_strided" in str(func) and not _fills_storage(args[0]):
                return func(*args, **(kwargs or {}))
            kept = pytree.tree_map(_copied, (tuple(args), dict(kwargs or {})))
            self.calls.append(Call(func, *kept))
        return func(*args, **(kwargs or {}))


def _is_plain(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype in NUMBERS and value.layout is torch.strided
    return True


def _fills_storage(tensor: torch.Tensor) -> bool:
    result: bool = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize
    return result


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def record(runs: Iterable[Callable[[], Any]], wanted: Callable[[str], bool]) -> list[Call]:
    """The calls of wanted overloads that the functions make; up to its error if one fails."""
    calls: list[Call] = []
    for run in runs:
        recorder = _Recorder(wanted)
        with warnings.catch_warnings(), torch.no_grad(), recorder:
            warnings.simplefilter("ignore")  # torch's own words on its own functions
            with contextlib.suppress(RuntimeError, NotImplementedError):  # of other devices
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
    """One graph of all calls: its results are the tensors that they give, in order.

    Complex tensors go in and come out as pairs of real numbers.
    """
    graph = fx.Graph()
    mode = fake_mode()
    made = []

    def placeholder(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(graph.nodes)}")
        node.meta["val"] = mode.from_tensor(_as_real(value))
        if not value.is_complex():
            return node
        return _called(graph, mode, torch.ops.aten.view_as_complex.default, node)

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
        outputs += [_real_result(graph, mode, item) for item in _results(graph, node)]
    graph.output(tuple(outputs))
    return fx.GraphModule(torch.nn.Module(), graph)


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    """Pairs of real numbers of complex ones."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _called(graph: fx.Graph, mode: FakeTensorMode, overload: Any, node: fx.Node) -> fx.Node:
    """A call of an overload of one tensor."""
    made = graph.call_function(overload, (node,))
    with mode:
        made.meta["val"] = overload(node.meta["val"])
    return made


def _real_result(graph: fx.Graph, mode: FakeTensorMode, node: fx.Node) -> fx.Node:
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or not value.is_complex():
        return node
    if value.is_conj():
        node = _called(graph, mode, torch.ops.aten.resolve_conj.default, node)
    return _called(graph, mode, torch.ops.aten.view_as_real.default, node)


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


def run_calls(calls: Sequence[Call], pipeline: str = "default") -> list[list[Any]]:
    """The results of each call through weft, as numpy arrays; numbers too."""
    imported = import_aten_graph(graph_of_calls(calls))
    machine = VirtualMachine(relax_build(imported.mod, relax_pipeline=pipeline), Device(1, 0))
    arrays = [array(_as_real(tensor).contiguous()) for tensor in tensors_of(calls)]
    results = iter(machine["main"](*arrays))
    return [[as_numpy(next(results)) for _ in _expected(call)] for call in calls]


def _expected(call: Call) -> list[torch.Tensor]:
    args, kwargs = pytree.tree_map(_copied, (call.args, call.kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in ``record``
        found = call.overload(*args, **kwargs)
    return [
        _as_real(item) if isinstance(item, torch.Tensor)
        else torch.tensor(int(item) if isinstance(item, bool) else item)  # as weft's machine does
        for item in pytree.tree_leaves(found)
        if isinstance(item, torch.Tensor | bool | int | float)
    ]  # fmt: skip


CHOSEN = frozenset({
    "aten.kthvalue.default", "aten.median.dim", "aten.mode.default", "aten.nanmedian.dim",
    "aten.sort.default", "aten.topk.default",
})  # fmt: skip
"""Overloads that give values and their places: of equal values PyTorch may choose any."""


def check_calls(calls: Sequence[Call], at_once: int = 24, pipeline: str = "default") -> None:
    """Every call gives in weft what it gives in torch."""
    for start in range(0, len(calls), at_once):
        some = calls[start : start + at_once]
        for call, found in zip(some, run_calls(some, pipeline), strict=True):
            expected = [as_numpy(item) for item in _expected(call)]
            if call.name in CHOSEN:
                expected[1] = _same_values(call, found[1], expected)
            for mine, its in zip(found, expected, strict=True):
                assert_same(mine, its, str(call))


def failures(
    calls: Sequence[Call], at_once: int = 24, pipeline: str = "default"
) -> list[str]:  # fmt: skip
    """What ``check_calls`` has to say of each call that is not as in torch, one text a call."""
    told: list[str] = []
    for start in range(0, len(calls), at_once):
        some = calls[start : start + at_once]
        try:
            check_calls(some, at_once, pipeline)
        except Exception as error:  # noqa: BLE001 - all failures are told together
            if len(some) > 1:
                told += failures(some, (len(some) + 3) // 4, pipeline)
            else:
                told.append(f"{some[0]}: {type(error).__name__} {str(error).strip():.300}")
    return told


def _same_values(call: Call, places: Any, expected: Sequence[Any]) -> Any:
    """The places that were found, if they hold the expected values; else the expected ones."""
    source, chosen = as_numpy(call.args[0]), expected[0]
    if source.ndim == 0 or chosen.ndim not in (source.ndim, source.ndim - 1):
        return expected[1]
    dim = _dimension(call) % source.ndim
    shaped = [array if array.ndim == source.ndim else np.expand_dims(array, dim)
              for array in (places, chosen)]  # fmt: skip
    held = np.take_along_axis(source, shaped[0], dim)
    return places if np.array_equal(held, shaped[1], equal_nan=held.dtype.kind == "f") else (
        expected[1]
    )  # fmt: skip


def _dimension(call: Call) -> int:
    """The argument ``dim`` of a call, by its schema."""
    for place, argument in enumerate(call.overload._schema.arguments):
        if argument.name == "dim":
            given = call.args[place] if place < len(call.args) else argument.default_value
            return int(call.kwargs.get("dim", given))
    return -1


SHAPES = ((), (1,), (0, 3), (2, 3))
"""No dimension, one element, none, and several."""


def values(shape: Sequence[int], dtype: torch.dtype, low: float = -3, high: float = 3) -> Any:
    """A tensor of numbers between low and high, spread evenly over its elements."""
    count = torch.Size(shape).numel()
    if dtype is torch.bool:
        return (torch.arange(count) % 3 == 0).reshape(shape)
    spread = torch.linspace(low, high, max(count, 1), dtype=torch.float64)[:count] * 1.01
    return spread.flip(0).reshape(shape).to(dtype)


def calls_of(
    name: str, dtypes: Iterable[torch.dtype], shapes: Sequence[Sequence[int]] = SHAPES,
    low: float = -3, high: float = 3, args: Sequence[Any] = (), kwargs: Any = None,
) -> list[Call]:  # fmt: skip
    """Calls of an overload on one tensor of each shape and data type, and further arguments."""
    overload = find_overload(name)
    return [
        Call(overload, (values(shape, dtype, low, high), *args), dict(kwargs or {}))
        for dtype in dtypes
        for shape in shapes
    ]


PAIRS = (((), ()), ((2, 3), ()), ((), (0, 3)), ((1,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (2, 3)))
"""Shapes that broadcast."""


def pairs_of(
    name: str, dtypes: Iterable[tuple[torch.dtype, torch.dtype]], low: float = -3, high: float = 3,
    kwargs: Any = None,
) -> list[Call]:  # fmt: skip
    """Calls of an overload on two tensors of shapes that broadcast."""
    overload = find_overload(name)
    return [
        Call(
            overload, (values(one, first, low, high), values(two, second, low, high) + 0),
            dict(kwargs or {}),
        )
        for first, second in dtypes
        for one, two in PAIRS
    ]  # fmt: skip
