"""torch.export, called for the user: its errors in few lines, its warnings kept quiet."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from weft.support.errors import TVMError

_SHOWN: Final = 5


class CaptureError(TVMError):
    """torch.export could not capture the model: control flow on data, an untraceable call ..."""


def capture(
    model: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """``torch.export.export`` of a model in the state it is in (``model.eval()`` is the caller's).

    Raises CaptureError with the head of torch's own report.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            return torch.export.export(
                model, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False
            )
        except TVMError:
            raise
        except Exception as error:
            raise CaptureError(_report(model, error)) from error


def _report(model: torch.nn.Module, error: Exception) -> str:
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith(("TORCHDYNAMO", "File \"/"))]
    shown = "\n".join(f"  {line[:160]}" for line in lines[:_SHOWN])
    name, kind = type(model).__name__, type(error).__name__
    told = f"torch.export cannot capture {name} ({kind}):\n{shown}\n"
    if isinstance(error, TypeError) and "argument" in str(error):
        return told + "check the example inputs against the parameters of the model's forward"
    return told + (
        "rewrite what depends on the values of tensors (torch.cond, torch.where), or use "
        "torch.compile(model, backend=\"weft\"), which splits the model there"
    )
