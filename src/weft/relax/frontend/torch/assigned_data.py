"""``tensor.data`` and ``state.data = value`` in ``forward``, which torch.export cannot capture.

Layers that bound the norms of their weights assign so, and spectral norms that keep a vector from
call to call; torch.export loses the tensor there. Within ``assigned_data`` reading is ``detach``,
whose result a trace knows. After an assignment to a parameter or buffer, functions of torch get
the value in its place, and when the model returns, it is written into the parameter or buffer.
What shared their memory before keeps what it held, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

_READ: Final = torch.Tensor.data.__get__
_ASSIGN: Final = torch.Tensor.data.__set__


class _Assignments(TorchFunctionMode):  # type: ignore[misc] # torch declares no type for it
    """The values that were assigned to the parameters and buffers of a model."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.values: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function with assigned values, or note one that is assigned."""
        if func == _ASSIGN:
            self._assign(*args)
            return None
        if self.values:
            args, kwargs = pytree.tree_map(self._current, (args, kwargs))
        if func == _READ:
            return args[0].detach()
        return func(*args, **(kwargs or {}))

    def _assign(self, state: torch.Tensor, value: torch.Tensor) -> None:
        """Note a value; raises RuntimeError for one that a compiled model could not keep."""
        states = [*self.model.parameters(), *self.model.buffers()]
        if not any(state is tensor for tensor in states):
            raise RuntimeError("tensor.data = ... is captured for parameters and buffers only")
        if state.shape != value.shape or state.dtype != value.dtype:
            raise RuntimeError(
                f"a parameter or buffer of {tuple(state.shape)}, {state.dtype} is assigned "
                f"{tuple(value.shape)}, {value.dtype}: only its values may change"
            )
        self.values[id(state)] = (state, value.detach())

    def _current(self, value: object) -> object:
        return self.values.get(id(value), (value, value))[1]

    def write_back(self, *_: object) -> None:
        """Write the values to where they belong: a hook that is called after ``forward``."""
        written, self.values = list(self.values.values()), {}
        with torch.no_grad():
            for state, value in written:
                state.copy_(value)


@contextmanager
def assigned_data(model: torch.nn.Module) -> Iterator[None]:
    """Within, a trace of the model follows assignments to the data of its states."""
    assignments = _Assignments(model)
    hook = model.register_forward_hook(assignments.write_back)
    try:
        with assignments:
            yield
    finally:
        hook.remove()
