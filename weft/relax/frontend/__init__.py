"""Importers: models of other frameworks as modules of graph functions (docs/design/0009)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.relax.frontend.common import detach_params as detach_params

_NAMES = {"detach_params": "weft.relax.frontend.common"}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, ("nn", "onnx", "torch"))
