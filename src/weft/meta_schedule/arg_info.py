"""What the arguments of a function are: kinds, types and shapes, as databases keep them."""

from __future__ import annotations

from abc import abstractmethod


class ArgInfo:
    """One argument."""

    @abstractmethod
    def as_json(self) -> list[object]:
        """As TVM's databases write it: ``["TENSOR", "float32", [16, 16]]``."""
