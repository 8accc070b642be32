"""PyTorch in: exported programs, fx graphs, sub-graphs of torch.compile.

This package needs torch, which is an optional extra: ``pip install weft[torch]``.
"""

from __future__ import annotations

from weft.support.errors import UnsupportedError

try:
    import torch
except ImportError as error:  # pragma: no cover - the tests have torch
    raise UnsupportedError(
        "weft.relax.frontend.torch needs torch: pip install weft[torch]"
    ) from error

from weft.relax.frontend.torch.exported_program import from_exported_program
from weft.relax.frontend.torch.fx_graph import from_fx

__all__ = ["from_exported_program", "from_fx"]
