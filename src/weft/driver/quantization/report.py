"""What ``weft.quantize`` did with each layer, and how far the layer is off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerReport:
    """One layer."""

    name: str
    """Its operator, and its number among the layers of that operator: ``conv2d_0``."""
    weights: tuple[int, ...]
    """The shape of its weights; empty where they are no constant of known shape."""
    error: float | None
    """The relative error of its result in integers, computed from an exact activation: the root of
    the sum of squared errors over that of squared results, over all samples; None: not measured."""
    reason: str
    """Why it stays in float32; "" where it multiplies integers."""

    @property
    def is_integer(self) -> bool:
        """Whether it multiplies integers."""
        return not self.reason

    def __str__(self) -> str:
        error = "" if self.error is None else f"{self.error:.2%}"
        what = "int8" if self.is_integer else f"float32: {self.reason}"
        weights = "x".join(map(str, self.weights))
        return f"{self.name:<14}{weights:<16}{error:>8}  {what}"


@dataclass(frozen=True)
class QuantizationReport:
    """All layers of a model: those that were measured, in program order, then the unsuitable."""

    layers: tuple[LayerReport, ...]

    @property
    def integer_layers(self) -> int:
        """How many layers multiply integers."""
        return sum([layer.is_integer for layer in self.layers])

    def __str__(self) -> str:
        head = f"{'layer':<14}{'weights':<16}{'error':>8}  computed in"
        count = f"{self.integer_layers} of {len(self.layers)} layers multiply integers"
        return "\n".join([head, *map(str, self.layers), count])
