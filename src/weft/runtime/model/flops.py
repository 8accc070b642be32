"""How many arithmetic operations kernels do on arguments of given shapes, for profiles.

The compiler counts them (``weft.driver.flops``), files carry the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.runtime.extent import Extent, evaluate, names_in
from weft.support.errors import IRValueError


@dataclass(frozen=True)
class FlopCount:
    """A number, or an expression over ``s0``, ``s1``, ...

    ``places`` says where each of these is found: in which argument, and along which axis of it
    (None: the argument itself).
    """

    total: Extent
    places: tuple[tuple[int, int | None], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no arithmetic over the symbols, as a damaged file may have it."""
        known = {f"s{index}" for index in range(len(self.places))}
        if isinstance(self.total, str) and not names_in(self.total) <= known:
            raise IRValueError(f"expected arithmetic over {sorted(known)}, got {self.total!r}")

    def of(self, arguments: Sequence[Any]) -> float:
        """The count for these arguments: tensors and numbers."""
        symbols = {}
        for index, (argument, axis) in enumerate(self.places):
            value = arguments[argument]
            symbols[f"s{index}"] = int(value if axis is None else value.shape[axis])
        return float(evaluate(self.total, symbols))

    def to_json(self) -> list[object]:
        """A list of the expression and the places."""
        return [self.total, [list(place) for place in self.places]]

    @staticmethod
    def from_json(data: Sequence[Any]) -> FlopCount:
        """What ``to_json`` made, also after a trip through JSON text."""
        total, places = data
        return FlopCount(total, tuple([(argument, axis) for argument, axis in places]))


def flops_of(
    counts: Mapping[str, FlopCount], kernel: str, arguments: Sequence[object]
) -> float | None:
    """The operations of a call of a kernel; None where they are not known."""
    count = counts.get(kernel)
    try:
        return None if count is None else count.of(arguments)
    except (ArithmeticError, IndexError, TypeError, ValueError, AttributeError):
        return None  # a file that says of a kernel what it does not take
