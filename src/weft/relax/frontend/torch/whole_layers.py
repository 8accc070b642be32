"""Recurrent layers that torch.export leaves whole, whatever their number of steps.

To learn the shapes of ``aten.lstm.input`` torch runs its own decomposition, a Python loop over the
steps, which makes a number of a symbolic length. Here it is told the shapes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table

_LAYERS: Final = (
    torch.ops.aten.lstm.input, torch.ops.aten.gru.input,
    torch.ops.aten.rnn_tanh.input, torch.ops.aten.rnn_relu.input,
)  # fmt: skip
_KEYS: Final = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def _shapes(
    input: torch.Tensor, hx: torch.Tensor | Sequence[torch.Tensor], params: object,
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool = False,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Tensors of the shapes that a layer gives: its outputs, and the last of each state."""
    states = [hx] if isinstance(hx, torch.Tensor) else list(hx)
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    outputs = input.new_empty([*input.shape[:-1], width])
    return outputs, *[state.new_empty(state.shape) for state in states]


@contextmanager
def whole_recurrent_layers() -> Iterator[None]:
    """Within, torch deduces the shapes of recurrent layers without their steps.

    This changes torch's tables for the whole process: hold ``EXPORTING``.
    """
    kept = [(layer, dict(layer.py_kernels), decomposition_table.get(layer)) for layer in _LAYERS]
    try:
        for layer in _LAYERS:
            _set_kernels(layer, {**layer.py_kernels, **dict.fromkeys(_KEYS, _shapes)})
            decomposition_table[layer] = _shapes
        yield
    finally:
        for layer, kernels, decomposition in kept:
            _set_kernels(layer, kernels)
            decomposition_table.pop(layer)
            if decomposition is not None:
                decomposition_table[layer] = decomposition


def _set_kernels(
    layer: torch._ops.OpOverload, kernels: dict[DispatchKey, object]
) -> None:
    layer.py_kernels.clear()
    layer.py_kernels.update(kernels)
    layer._dispatch_cache.clear()  # what torch remembers of them
