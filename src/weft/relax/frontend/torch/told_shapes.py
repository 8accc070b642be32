"""Shapes that torch.export is told, of operators whose own way to find them it cannot take.

To learn the shapes of ``aten.lstm.input`` torch runs its own decomposition, a Python loop over the
steps, which makes a number of a symbolic length. To learn those of ``aten.cdist`` it asks whether
there are more than 25 rows, as its kernels differ there. Of least squares it says that they depend
on data, which its usual driver's do not. A choice by a mask of bytes, as old models have them, it
refuses, though its kernels take it. It does not see that ``4 * n`` rows are four pieces of ``n``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import sympy
import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._subclasses.fake_impls import op_implementations_dict
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

_LAYERS: Final = (
    torch.ops.aten.lstm.input, torch.ops.aten.gru.input,
    torch.ops.aten.rnn_tanh.input, torch.ops.aten.rnn_relu.input,
)  # fmt: skip
_CDIST: Final = torch.ops.aten.cdist.default
_KEYS: Final = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)
_LSTSQ: Final = torch.ops.aten.linalg_lstsq.default
_WHERE: Final = torch.ops.aten.where.self
_SPLIT: Final = torch.ops.aten.split.Tensor
_TORCHS_SPLIT: Final = decomposition_table[_SPLIT]


def _recurrent(
    input: torch.Tensor,
    hx: torch.Tensor | Sequence[torch.Tensor],
    params: object,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Tensors of the shapes that a layer gives: its outputs, and the last of each state."""
    states = [hx] if isinstance(hx, torch.Tensor) else list(hx)
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    outputs = input.new_empty([*input.shape[:-1], width])
    return outputs, *[state.new_empty(state.shape) for state in states]


def _cdist(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2, compute_mode: int | None = None
) -> torch.Tensor:
    """A tensor of the shape of the distances between the rows of two tensors."""
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return x1.new_empty([*batch, x1.shape[-2], x2.shape[-2]])


def _split(self: torch.Tensor, split_size: int, dim: int = 0) -> tuple[torch.Tensor, ...]:
    """The pieces of a tensor, of an extent that is a multiple of theirs whatever the sizes are."""
    size = self.shape[dim]
    if isinstance(size, torch.SymInt) and isinstance(split_size, torch.SymInt):
        count = sympy.cancel(size.node.expr / split_size.node.expr)
        if count.is_Integer:
            return tuple(self.split_with_sizes([split_size] * int(count), dim))
    return tuple(_TORCHS_SPLIT(self, split_size, dim))


def _lstsq(
    mode: FakeTensorMode,
    function: torch._ops.OpOverload,
    self: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, ...]:
    """Tensors of the shapes that the driver ``gelsy`` gives, torch's own choice on CPUs."""
    if driver not in (None, "gelsy"):
        raise DynamicOutputShapeException(function)
    is_vector = b.ndim == self.ndim - 1
    columns = [] if is_vector else [b.shape[-1]]
    batch = torch.broadcast_shapes(self.shape[:-2], b.shape[: -1 if is_vector else -2])
    with mode:
        solution = self.new_empty([*batch, self.shape[-1], *columns])
        rank = self.new_empty(self.shape[:-2], dtype=torch.int64)
        return solution, self.new_empty([0]), rank, self.new_empty([0])


def _where(
    mode: FakeTensorMode,
    function: torch._ops.OpOverload,
    condition: torch.Tensor,
    self: torch.Tensor,
    other: torch.Tensor,
) -> torch.Tensor:
    """A tensor of the shape and type that a choice gives, by bytes as well as by booleans."""
    if condition.dtype != torch.uint8:
        return NotImplemented
    with mode:
        chosen: torch.Tensor = function(condition != 0, self, other)
    return chosen


_FAKE: Final = {_LSTSQ: _lstsq, _WHERE: _where}
"""Shapes of operators for which torch asks this table before its own ways."""


@contextmanager
def told_shapes() -> Iterator[None]:
    """Within, torch deduces the shapes of recurrent layers, distances and lstsq as told here.

    This changes torch's tables for the whole process: hold ``EXPORTING``.
    """
    told = {**dict.fromkeys(_LAYERS, _recurrent), _CDIST: _cdist, _SPLIT: _split}
    kept = [(layer, dict(layer.py_kernels), decomposition_table.get(layer)) for layer in told]
    ways = {way: shapes for way, shapes in _FAKE.items() if way not in op_implementations_dict}
    try:
        for layer, shapes in told.items():
            _set_kernels(layer, {**layer.py_kernels, **dict.fromkeys(_KEYS, shapes)})
            decomposition_table[layer] = shapes
        op_implementations_dict.update(ways)
        yield
    finally:
        for layer, kernels, decomposition in kept:
            _set_kernels(layer, kernels)
            decomposition_table.pop(layer)
            if decomposition is not None:
                decomposition_table[layer] = decomposition
        for way in ways:
            op_implementations_dict.pop(way)


def _set_kernels(layer: torch._ops.OpOverload, kernels: dict[DispatchKey, object]) -> None:
    layer.py_kernels.clear()
    layer.py_kernels.update(kernels)
    layer._dispatch_cache.clear()  # what torch remembers of them
