"""Random networks of NNSmith (Liu et al., ASPLOS 2023), which knows nothing of weft.

NNSmith draws a graph of operators whose shapes a solver chose; here it becomes a ``Network``, a
plain ``torch.nn.Module`` of one call after the other. The calls stay apart, so that
``float64_judge`` can follow what rounding does on the way, and a failing network can be cut.
"""

from __future__ import annotations

import functools
import importlib
import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

METHODS: Final = ("symbolic", "symbolic-cinit", "concolic")
"""How NNSmith searches: all sizes by the solver, a first tensor of random sizes, node by node."""
ELEMENTS: Final = (64, 512, 4096, 16384)
"""The largest number of elements of one tensor."""
LARGEST: Final = 15
"""The largest number of operators."""
STARTS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {},
    {"rank_choices": [3, 4], "init_fp": True},
)
"""What the first tensor is: any, or one that images go on from."""
OFTEN: Final = 5
"""How many times as often operators of images are tried: they fit few tensors."""
SOLVER_MILLISECONDS: Final = 60_000


@dataclass(frozen=True)
class Node:
    """One call: ``Node("Add", torch.add, ("v0_0", "v1_0"), "v2_0", "Add(v0_0, v1_0)")``.

    ``target`` is the dtype of a cast, which the judge widens.
    """

    kind: str
    call: Callable[..., torch.Tensor]
    arguments: tuple[str, ...]
    result: str
    text: str
    target: torch.dtype | None = None


class Network(torch.nn.Module):
    """Nodes in order, from the named inputs to the named outputs; called with inputs by position.

    >>> node = Node("Neg", torch.neg, ("x",), "y", "Neg(x)")
    >>> Network(("x",), (node,), ("y",))(torch.ones(2))
    (tensor([-1., -1.]),)
    """

    def __init__(self, inputs: Sequence[str], nodes: Sequence[Node], outputs: Sequence[str]):
        super().__init__()
        self.inputs, self.nodes, self.outputs = tuple(inputs), tuple(nodes), tuple(outputs)
        layers = [node.call for node in nodes if isinstance(node.call, torch.nn.Module)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs, each a tensor."""
        values = dict(zip(self.inputs, arguments, strict=True))
        for node in self.nodes:
            values[node.result] = node.call(*[values[name] for name in node.arguments])
        return tuple(values[name] for name in self.outputs)

    def up_to(self, result: str) -> Network:
        """What the node of ``result`` needs, and nothing else; inputs stay as they are."""
        needed, kept = {result}, []
        for node in reversed(self.nodes):
            if node.result in needed:
                needed.update(node.arguments)
                kept.append(node)
        outcome: Network = Network(self.inputs, tuple(reversed(kept)), (result,)).eval()
        return outcome


@dataclass(frozen=True)
class Drawn:
    """A network with arguments to call it with."""

    network: Network
    arguments: tuple[torch.Tensor, ...]


def random_network(seed: int) -> Drawn:
    """The network of a seed, its weights and arguments; needs nnsmith.

    The same seed gives the same network in a process that drew none before, under one
    ``PYTHONHASHSEED``: the solver remembers, and NNSmith iterates over sets.
    """
    draw = random.Random(seed)
    elements, method = draw.choice(ELEMENTS), draw.choice(METHODS)
    library = importlib.import_module("nnsmith.graph_gen")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = library.model_gen(
            opset=list(_operators()),
            method=method,
            seed=seed,
            **draw.choice(STARTS),
            max_nodes=draw.randint(1, LARGEST),
            max_elem_per_tensor=elements,
            timeout_ms=SOLVER_MILLISECONDS,
        ).make_concrete()
        torch.manual_seed(seed)
        network = _network(drawn).eval()
        _spread_statistics(network)
    given = [drawn.vars[name] for name in network.inputs]
    kind = draw.choice(tuple(VALUES))
    arguments = tuple(_argument(kind, tuple(of.shape), of.dtype.torch()) for of in given)
    return Drawn(network, arguments)


def prepare() -> None:
    """Import what ``random_network`` needs, and draw nothing."""
    importlib.import_module("nnsmith.graph_gen")
    _operators()


@functools.cache
def _operators() -> tuple[Any, ...]:
    """All of NNSmith's operators for PyTorch, and products, which it declares but does not give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no pygraphviz
        forward = importlib.import_module("nnsmith.materialize.torch.forward")
    operators, dtypes = forward.ALL_TORCH_OPS, importlib.import_module("nnsmith.abstract.dtype")
    product = forward.ReduceProd
    product.in_dtypes = [(kind,) for kind in [*dtypes.DTYPE_GEN_FLOATS, dtypes.DType.int64]]
    product.out_dtypes = product.in_dtypes

    def forward_fn(op: Any) -> Callable[..., torch.Tensor]:
        axis = op.extra_attrs["reduce_dim"]
        return torch.Tensor.prod if axis is None else lambda x: x.prod(axis)

    forward.operator_impl(product)(forward_fn)  # by this name NNSmith looks it up
    return tuple(op for op in operators for _ in range(OFTEN if op.__name__ in _RARE else 1))


_RARE: Final = {
    "Conv1d", "NCHWConv2d", "MaxPool2d", "AvgPool2d", "BatchNorm2d", "PReLU", "Linear",
    "NearestInterp", "LinearInterp", "BilinearInterp", "BicubicInterp", "TrilinearInterp",
    "ConstPad", "ReflectPad", "ReplicatePad",
}  # fmt: skip


def _network(drawn: Any) -> Network:
    forward_fn = importlib.import_module("nnsmith.materialize.torch.forward").forward_fn
    nodes = []
    for step in drawn.insts:
        op, (result,) = step.iexpr.op, step.retvals()
        if type(op).__name__ == "Input":
            continue
        target = op.extra_attrs["to"].torch() if "to" in op.extra_attrs else None
        shapes = ", ".join(f"{name}: {drawn.vars[name]}" for name in step.iexpr.args)
        text = f"{result}: {drawn.vars[result]} = {_described(op)}({shapes})"
        nodes.append(
            Node(type(op).__name__, forward_fn(op), tuple(step.iexpr.args), result, text, target)
        )
    return Network(drawn.input_var(), nodes, drawn.leaf_var())


def _described(op: Any) -> str:
    """The operator with its attributes: ``Slice[axis=1, start=0, ...]``."""
    attributes = {
        name: value
        for name, value in {**vars(op), **op.extra_attrs}.items()
        if isinstance(value, (int, str, list, tuple)) and name not in _NO_ATTRIBUTES
    }
    listed = ", ".join(f"{name}={value}" for name, value in attributes.items())
    return f"{type(op).__name__}[{listed}]"


_NO_ATTRIBUTES: Final = {"inp_ranks", "out_ranks", "_input_like", "_output_like", "ndims"}


def _spread_statistics(network: Network) -> None:
    """Batch norms that do something: NNSmith leaves their statistics at 0 and 1."""
    for layer in network.layers:
        if isinstance(layer, torch.nn.BatchNorm2d):
            for tensor, low, high in (
                (layer.running_mean, -1.0, 1.0),
                (layer.running_var, 0.1, 2.0),
                (layer.weight.data, 0.5, 2.0),
                (layer.bias.data, -1.0, 1.0),
            ):
                assert tensor is not None
                tensor.uniform_(low, high)


def _positive(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape) * 4 + 3


def _around_zero(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape) * 4 - 2


def _unit(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(shape)


def _wide(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape) * 10 ** (torch.rand(shape) * 6 - 3)


def _halves(shape: tuple[int, ...]) -> torch.Tensor:
    """Halves from -4 to 4: what rounds, compares and floors at its ties."""
    return torch.randint(-8, 9, shape) / 2


def _extreme(shape: tuple[int, ...]) -> torch.Tensor:
    """Among ordinary numbers NaN, infinities, zeros of both signs, what overflows and vanishes."""
    rare = torch.tensor(EXTREMES)[torch.randint(0, len(EXTREMES), shape)]
    return torch.where(torch.rand(shape) < 0.1, rare, torch.randn(shape))


EXTREMES: Final = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 3e38, -3e38, 65504.0, -7e4, 1e-38, -6e-8, 2.0**31,
)  # fmt: skip
VALUES: Final[Mapping[str, Callable[[tuple[int, ...]], torch.Tensor]]] = {
    "positive": _positive,
    "around zero": _around_zero,
    "unit": _unit,
    "wide": _wide,
    "halves": _halves,
    "extreme": _extreme,
}
"""Distributions of arguments; one network has one."""


def _argument(kind: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    values = VALUES[kind](shape)
    if dtype.is_complex:
        return torch.complex(values.double(), VALUES[kind](shape).double()).to(dtype)
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        values = torch.round(values * 4).nan_to_num(0.0)
        limits = torch.iinfo(dtype)
        most = 1 << 62  # beyond, limits of int64 are no float64
        values = values.double().clamp(max(limits.min, -most), min(limits.max, most))
        return (values.abs() if dtype is torch.uint8 else values).to(dtype)
    return values.to(dtype)
