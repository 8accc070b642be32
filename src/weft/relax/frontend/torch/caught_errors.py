"""Layers that raise what their model catches, while torch.export traces it.

``try: x = layer(x, lengths) except TypeError: x = layer(x)`` is how a chain of layers finds out
which of them take lengths. torch's tracer would go on as if the first call had not ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import fx

_call_module: Final = fx.Tracer.call_module


def call_module(
    self: fx.Tracer,
    m: torch.nn.Module,
    forward: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The method of tracers of this name; after an error the calls around it go on."""
    around = list(self.module_stack.items())
    try:
        return _call_module(self, m, forward, args, kwargs)
    except Exception:
        self.module_stack.clear()
        self.module_stack.update(around)
        raise
