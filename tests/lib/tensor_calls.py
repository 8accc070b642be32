"""Small models of torch, and a count of their calls that go through Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.runtime.model.compiled_model import CompiledModel


class Two(torch.nn.Module):
    """Two outputs in a dictionary."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        return {"sum": x + y, "rest": [(x * y).sum(1)]}


def perceptron(width: int = 16) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(24, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)]
    return torch.nn.Sequential(*layers).eval()


def counted(model: CompiledModel) -> tuple[CompiledModel, list[int]]:
    """A model whose calls through Python are counted."""
    through_python: list[int] = []
    outputs = model._outputs

    def noted(values: Sequence[object]) -> object:
        through_python.append(1)
        return outputs(values)

    vars(model)["_outputs"] = noted
    return model, through_python
