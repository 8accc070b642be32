"""Numbers that a model holds in buffers, where control flow or an extent depends on them.

Models of speech keep strides and paddings of their convolutions so: ``if length <= self.padding``.
torch.export takes a buffer for a tensor of unknown values. Where it stops at that, it is told the
values of small buffers, with which it computes as it does with those of ``torch.tensor(3)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch
from torch._subclasses import fake_tensor

_LIMIT: Final = "CONSTANT_NUMEL_LIMIT"
"""torch's limit of the elements of a tensor whose values it follows."""
_MOST: Final = 256
_READS: Final = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)


def numbers_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The small buffers of a model, by name, as copies."""
    return {
        name: buffer.detach().clone()
        for name, buffer in model.named_buffers(remove_duplicate=False)
        if 0 < buffer.numel() <= _MOST and buffer.layout is torch.strided
    }


@contextmanager
def known_numbers(model: torch.nn.Module, numbers: dict[str, torch.Tensor]) -> Iterator[None]:
    """Within, a trace of the model knows these values of its buffers."""

    def tell(*_: object) -> None:
        for name, buffer in model.named_buffers(remove_duplicate=False):
            if name in numbers and isinstance(buffer, fake_tensor.FakeTensor):
                buffer.constant = numbers[name]

    limit = getattr(fake_tensor, _LIMIT, 1)
    hook = model.register_forward_pre_hook(tell)
    setattr(fake_tensor, _LIMIT, _MOST)
    try:
        yield
    finally:
        setattr(fake_tensor, _LIMIT, limit)
        hook.remove()


def erase_reads(program: torch.export.ExportedProgram) -> None:
    """Take reads of known numbers out of a program: torch records them without a result."""
    graph = program.graph
    for node in [node for node in graph.nodes if node.target in _READS]:
        if not node.users and not isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat):
            graph.erase_node(node)
    program.graph_module.recompile()
