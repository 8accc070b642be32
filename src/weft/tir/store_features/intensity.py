"""The curve of arithmetic intensity: operations per byte, as more and more loops run."""

from __future__ import annotations

from weft.tir.store_features.loop_nest import LoopNest
from weft.tir.store_features.numbers import extent_of, slog


def intensity_curve(
    nest: LoopNest, loop_bytes: list[int], operations: int, samples: int
) -> list[float]:
    """Logarithms of operations per byte at equal shares of all operations.

    Args:
        nest: the loops around a store.
        loop_bytes: bytes that one run of each loop touches, outermost first.
        operations: floating-point operations of one run of the store.
        samples: points of the curve.
    """
    done: list[float] = []
    current = float(operations)
    for loop in reversed(nest.loops):
        current *= extent_of(loop)
        done.append(current)
    if not done or done[-1] <= 0:
        return [0.0] * samples
    rates = [
        ops / touched if touched else 0.0
        for ops, touched in zip(done, reversed(loop_bytes), strict=True)
    ]
    curve = []
    place = 0
    for sample in range(1, samples + 1):
        wanted = sample / samples * done[-1]
        while place < len(done) - 1 and done[place] < wanted - 1e-4:
            place += 1
        curve.append(slog(_between(done, rates, place, wanted)))
    return curve


def _between(done: list[float], rates: list[float], place: int, wanted: float) -> float:
    """The rate at a number of operations, on the line between two loops."""
    if place == 0 or done[place] == done[place - 1]:
        return rates[place]
    slope = (rates[place] - rates[place - 1]) / (done[place] - done[place - 1])
    return rates[place - 1] + slope * (wanted - done[place - 1])
