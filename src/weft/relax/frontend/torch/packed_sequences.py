"""Packed sequences while torch.export captures: padded ones with their lengths.

``pack_padded_sequence`` puts the rows of all steps behind one another, as many as the lengths tell,
and recurrent layers make numbers of them. A trace has neither. So a packed sequence is the padded
one and the lengths there, which the layers of weft take as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils import rnn

from weft.support.errors import UnsupportedError

_LAYERS: Final = {
    "LSTM": torch.ops.aten.lstm.data,
    "GRU": torch.ops.aten.gru.data,
    "RNN_TANH": torch.ops.aten.rnn_tanh.data,
    "RNN_RELU": torch.ops.aten.rnn_relu.data,
}
"""PyTorch's layers over packed sequences, by their ``mode``."""
_pack: Final = rnn.pack_padded_sequence
_pad: Final = rnn.pad_packed_sequence


def _recurrent(
    data: torch.Tensor,
    lengths: torch.Tensor,
    states: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    mode: str,
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
) -> list[torch.Tensor]:
    """(outputs, last states ...) of layers over sequences (steps, batch, features) that end early.

    Outputs after the end of a sequence are 0.
    """
    packed = _pack(data, lengths.cpu(), enforce_sorted=False)
    order = packed.sorted_indices
    firsts = [state[:, order] for state in states]
    hidden = firsts if mode == "LSTM" else firsts[0]
    options = (has_biases, num_layers, 0.0, False, bidirectional)
    rows, *ends = _LAYERS[mode](packed.data, packed.batch_sizes, hidden, list(params), *options)
    outputs = rnn.PackedSequence(rows, *packed[1:])
    padded, _ = _pad(outputs, total_length=data.shape[0])
    return [padded, *[end[:, packed.unsorted_indices] for end in ends]]


def _shapes(
    data: torch.Tensor, _lengths: torch.Tensor, states: Sequence[torch.Tensor], *options: object
) -> list[torch.Tensor]:
    width = states[0].shape[-1] * (2 if options[-1] else 1)
    outputs = data.new_empty([*data.shape[:-1], width])
    return [outputs, *[torch.empty_like(state) for state in states]]


recurrent: Final = torch.library.custom_op("weft::recurrent", _recurrent, mutates_args=())
recurrent.register_fake(_shapes)


@dataclass(frozen=True)
class Padded:
    """What a packed sequence is in a trace: ``padded`` (steps, batch, ...), ``lengths`` (batch,).

    ``longest`` is the largest length where Python knows it.
    """

    padded: torch.Tensor
    lengths: torch.Tensor
    longest: int | None

    def __getattr__(self, name: str) -> object:
        if name in rnn.PackedSequence._fields:
            raise UnsupportedError(
                f"packed sequence: expected it to be given to LSTM, GRU, RNN and "
                f"pad_packed_sequence only, got a use of its {name}; pad it first, or use "
                'torch.compile(model, backend="weft"), which splits the model there'
            )
        raise AttributeError(name)


def pack_padded_sequence(
    input: torch.Tensor,
    lengths: torch.Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,  # noqa: ARG001 - any order is right
) -> Padded:
    """PyTorch's function of this name."""
    is_known = not isinstance(lengths, torch.Tensor)
    longest = max(lengths) if is_known and all(type(item) is int for item in lengths) else None
    counts = torch.as_tensor(lengths, dtype=torch.int64)
    return Padded(input.transpose(0, 1) if batch_first else input, counts, longest)


def pad_packed_sequence(
    sequence: Padded,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's function of this name."""
    padded, lengths = sequence.padded, sequence.lengths
    if total_length is None or not statically_known_true(total_length == padded.shape[0]):
        steps = _longest(sequence)
        padded = padded[:steps]
        if total_length is not None:
            missing = [0, 0] * (padded.ndim - 1) + [0, total_length - steps]
            padded = nn.functional.pad(padded, missing)
    ended = torch.arange(padded.shape[0])[:, None] >= lengths
    ended = ended.reshape([*ended.shape, *[1] * (padded.ndim - 2)])
    padded = padded.masked_fill(ended, padding_value)
    return padded.transpose(0, 1) if batch_first else padded, lengths


def _longest(sequence: Padded) -> int:
    """The largest length: a number, or a symbol that only the data tell."""
    if sequence.longest is not None:
        return sequence.longest
    steps = sequence.lengths.max().item()
    assert isinstance(steps, int | torch.SymInt)
    torch._check(steps >= 1)
    torch._check(steps <= sequence.padded.shape[0])
    return steps


def _layers_of(layer: type[nn.RNNBase]) -> Callable[..., object]:
    """The method ``forward`` of recurrent layers that take what is packed here, too."""
    forward = layer.forward

    def padded_forward(self: nn.RNNBase, input: torch.Tensor | Padded, hx: Any = None) -> object:
        if not isinstance(input, Padded):
            return forward(self, input, hx)
        return _layers(self, input, hx)

    return padded_forward


def _layers(layer: nn.RNNBase, input: Padded, hx: Any) -> tuple[Padded, object]:
    """(outputs, last states) of a layer's own ``forward``."""
    if layer.proj_size or (layer.training and layer.dropout):
        raise UnsupportedError(
            f"{type(layer).__name__} of a packed sequence: expected no projection, and no dropout "
            f"while training, got proj_size={layer.proj_size}, dropout={layer.dropout}; call "
            "model.eval(), or pad the sequences"
        )
    data, is_lstm = input.padded, layer.mode == "LSTM"
    if hx is None:
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        zeros = data.new_zeros(count, data.shape[1], layer.hidden_size)
        hx = (zeros, zeros) if is_lstm else zeros
    outputs, *ends = torch.ops.weft.recurrent(
        data, input.lengths, list(hx) if is_lstm else [hx], layer._flat_weights, layer.mode,
        layer.bias, layer.num_layers, layer.bidirectional,
    )  # fmt: skip
    return Padded(outputs, input.lengths, input.longest), tuple(ends) if is_lstm else ends[0]


lstm, gru, plain = (_layers_of(layer) for layer in (nn.LSTM, nn.GRU, nn.RNN))
