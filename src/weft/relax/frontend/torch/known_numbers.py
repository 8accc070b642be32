"""Numbers in small tensors of a model, where control flow or an extent depends on them.

Models of speech keep strides and paddings of convolutions in buffers (``if size <= self.padding``)
and models of images tables of heights and widths (``torch.tensor(shapes)[0, 1]``). torch.export
takes a buffer for a tensor of unknown values, and follows the values of no more than one element.
Where it stops at that, it is told the values of small buffers, and follows those of small tensors.
So it does of small tensors that the model makes of numbers (``torch.linspace(0, 1, 5)``): solvers
of differential equations look at the points of time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode

_LIMIT: Final = "CONSTANT_NUMEL_LIMIT"
"""torch's limit of the elements of a tensor whose values it follows."""
_MOST: Final = 256
_ROWS: Final = (torch.arange, torch.linspace, torch.logspace)
"""What makes a row of numbers."""
READS: Final = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
"""Operators that make a number of a tensor of one element."""


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

    hook = model.register_forward_pre_hook(tell)
    try:
        with _followed(fake_tensor), _followed(proxy_tensor), _KnownRows():
            yield
    finally:
        hook.remove()


class _KnownRows(TorchFunctionMode):  # type: ignore[misc]  # torch has no types for it
    """Within, small tensors that are made of numbers only are written out, as from a list."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Collection[type],  # noqa: ARG002 - the parameters are torch's
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if func in _ROWS and all(type(value) in (int, float) for value in args):
            if all(type(value) in (int, float, torch.dtype) for value in given.values()):
                with unset_fake_temporarily(), disable_proxy_modes_tracing():
                    row = func(*args, **given)
                if isinstance(row, torch.Tensor) and row.numel() <= _MOST:
                    return torch.tensor(row.tolist(), dtype=row.dtype)
        return func(*args, **given)


@contextmanager
def _followed(module: ModuleType) -> Iterator[None]:
    """Within, a module of torch follows the values of small tensors, not of numbers only."""
    limit = getattr(module, _LIMIT, 1)
    setattr(module, _LIMIT, _MOST)
    try:
        yield
    finally:
        setattr(module, _LIMIT, limit)


def erase_reads(program: torch.export.ExportedProgram) -> None:
    """Take reads of known numbers out of a program: torch records them without a result."""
    graph = program.graph
    for node in [node for node in graph.nodes if node.target in READS]:
        if not node.users and not isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat):
            graph.erase_node(node)
    program.graph_module.recompile()
