"""What a row of a benchmark is: a name, a model of PyTorch that a child can make, its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Input:
    """An array: random normal numbers, or whole numbers below ``below``."""

    shape: tuple[int, ...]
    below: int = 0

    def array(self, rng: np.random.Generator) -> Any:
        """The array: float32, or int64."""
        if self.below:
            return rng.integers(0, self.below, self.shape)
        return rng.standard_normal(self.shape, np.float32)


@dataclass(frozen=True)
class Row:
    """One model; ``model`` is ``package.module:name`` of what makes it (weft.cli.models)."""

    name: str
    model: str
    inputs: tuple[Input, ...]

    def arrays(self) -> dict[str, Any]:
        """Its inputs ``x0``, ``x1``, …, the same every time."""
        rng = np.random.default_rng(0)
        return {f"x{i}": item.array(rng) for i, item in enumerate(self.inputs)}
