"""How the elements of a result lie in memory, as torch deduced it for a graph.

Kernels write compact tensors. What follows a graph in PyTorch may view its results, and programs
may read ``stride()``, so results are laid out as torch would.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Layout:
    """``order``: the axes from the slowest to the fastest. Along those in ``repeated`` all elements
    are one. ``strides`` are given where elements lie apart, for which sizes must be fixed.
    """

    order: tuple[int, ...]
    repeated: tuple[int, ...]
    strides: tuple[int, ...] | None

    def of(self, compact: torch.Tensor) -> torch.Tensor:
        """A compact tensor's elements in this layout."""
        kept = compact
        for axis in self.repeated:
            kept = kept.narrow(axis, 0, min(1, kept.shape[axis]))
        if self.strides is not None:
            laid = torch.empty_strided(kept.shape, self.strides, dtype=kept.dtype).copy_(kept)
        else:
            back = sorted(range(len(self.order)), key=self.order.__getitem__)
            laid = kept.permute(self.order).contiguous().permute(back)
        return laid.expand(compact.shape)


def layout_of(result: torch.Tensor) -> Layout | None:
    """The layout of a fake tensor; None where a compact tensor is right, or has to do.

    It has to where elements overlap, as windows do, and where gaps between them are symbolic.
    """
    if result.is_contiguous():
        return None
    sizes, strides = _hints(result.shape), _hints(result.stride())
    if sizes is None or strides is None:
        return None
    repeated = tuple(i for i, step in enumerate(strides) if step == 0 and sizes[i] != 1)
    kept = [1 if i in repeated else size for i, size in enumerate(sizes)]
    order = tuple(sorted(range(len(sizes)), key=lambda i: (-strides[i], -sizes[i])))
    steps = [(strides[i], kept[i]) for i in reversed(order) if kept[i] != 1]
    ends = list(itertools.accumulate((step * (size - 1) for step, size in steps), initial=0))
    if any(step <= end for (step, _), end in zip(steps, ends, strict=False)):
        return None
    if all(step == end + 1 for (step, _), end in zip(steps, ends, strict=False)):
        return Layout(order, repeated, None)
    fixed = all(isinstance(item, int) for item in (*result.shape, *result.stride()))
    return Layout(order, repeated, tuple(strides)) if fixed else None


def _hints(sizes: Sequence[int | torch.SymInt]) -> list[int] | None:
    """The numbers that symbolic sizes were when the graph was captured; None if data tell one."""
    hints = [
        size if isinstance(size, int) else size.node.hint if size.node.has_hint() else None
        for size in sizes
    ]
    return None if None in hints else [int(hint) for hint in hints if hint is not None]
