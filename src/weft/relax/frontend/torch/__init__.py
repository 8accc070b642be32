"""PyTorch in: exported programs, fx graphs, sub-graphs of torch.compile (docs/design/0009)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.dynamo.capture import dynamo_capture_subgraphs as dynamo_capture_subgraphs
    from weft.dynamo.capture import relax_dynamo as relax_dynamo
    from weft.relax.frontend.torch.exported_program import (
        from_exported_program as from_exported_program,
    )
    from weft.relax.frontend.torch.fx_graph import from_fx as from_fx

_NAMES = {
    "dynamo_capture_subgraphs": "weft.dynamo.capture",
    "from_exported_program": "weft.relax.frontend.torch.exported_program",
    "from_fx": "weft.relax.frontend.torch.fx_graph",
    "relax_dynamo": "weft.dynamo.capture",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
