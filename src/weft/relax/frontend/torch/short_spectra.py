"""The inverse of a short-time Fourier transform while torch.export captures.

torch takes the length of the signal for a number, and so makes a constant of a symbolic one.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

_istft: Final = torch.istft


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Tensor:
    """``torch.istft``: (..., frequencies, frames) complex to (..., samples)."""
    if not isinstance(length, torch.SymInt) or return_complex or onesided is False:
        return _istft(
            input, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
            return_complex,
        )  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = input.real.new_ones(win_length or n_fft) if window is None else window
    left = (n_fft - weights.shape[0]) // 2
    weights = functional.pad(weights, (left, n_fft - weights.shape[0] - left))
    norm = "ortho" if normalized else "backward"
    frames = torch.fft.irfft(input.transpose(-1, -2), n_fft, norm=norm) * weights
    squares = weights.square().expand(1, *frames.shape[-2:])
    signal = _added(frames.reshape(-1, *frames.shape[-2:]), hop) / _added(squares, hop)
    begin = n_fft // 2 if center else 0
    signal = functional.pad(signal, (0, length)).narrow(1, begin, length)
    return signal.reshape(*input.shape[:-2], length)


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames (batch, count, samples) added where they overlap, each ``hop`` after the last."""
    batch, count, samples = frames.shape
    sizes = [batch, samples + hop * (count - 1)]
    return torch.ops.aten.unfold_backward(frames, sizes, 1, samples, hop)
