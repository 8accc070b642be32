"""Importers: models of other frameworks, and Python classes, as modules of graph functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.relax.frontend.common import detach_params as detach_params

__getattr__, __dir__ = module_getattr(
    __name__, {"detach_params": "weft.relax.frontend.common"}, ("nn", "onnx", "torch")
)
