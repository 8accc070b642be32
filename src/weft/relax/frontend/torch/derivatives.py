"""Models whose forward differentiates: forces as gradients of energies, Jacobians of flows.

torch.export traces calls of torch as a model makes them, before torch's autograd sees them, and
so it sees nothing of what ``torch.autograd.grad`` and ``torch.func`` do. A trace below autograd
has the operators of the derivatives, too.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from torch.export._trace import _export

_TORCH: Final = Path(torch.__file__).parent
_DERIVATIVES: Final = frozenset(
    str(_TORCH / name)
    for name in ("_functorch/eager_transforms.py", "autograd/__init__.py", "autograd/functional.py")
)
"""Files of the functions that differentiate."""


_LEVELS: Final = frozenset({"_grad_increment_nesting", "_jvp_increment_nesting"})
"""Functions of torch with which a derivative begins, as they stand in graphs."""


def has_derivatives(program: torch.export.ExportedProgram) -> bool:
    """Whether a program has calls that differentiate, instead of operators of derivatives."""
    return any(getattr(node.target, "__name__", "") in _LEVELS for node in program.graph.nodes)


def differentiates(error: Exception, lost: str) -> bool:
    """Whether a trace failed in a call that differentiates, or lost what such a call gives.

    ``lost`` is in the message of torch's error about tensors that come from nowhere.
    """
    if lost in str(error) or "functorch" in str(error):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename in _DERIVATIVES for frame in frames)


def exported_below_autograd(
    model: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    dynamic_shapes: object,
) -> torch.export.ExportedProgram:
    """The program of a trace below autograd.

    Parameters need no gradients meanwhile: torch would record what it takes to train them.
    """
    trained = [item for item in model.parameters() if item.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        program: torch.export.ExportedProgram = _export(
            model, args, dict(kwargs), dynamic_shapes, strict=False, pre_dispatch=False
        )
        return program
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
