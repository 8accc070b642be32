"""Sums a long reduction in parts, which makes the result more accurate.

Each addition rounds the sum so far, so the error of adding ``n`` numbers one after the other grows
with ``n``. If parts of ``p`` numbers are summed first and their sums are added then, it grows with
``p + n / p`` (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2).
Libraries of matrix products sum in such parts anyway, since they cut the reduction for the caches
(Goto and van de Geijn, 2008); with one chain of additions a model would be further from the exact
result than with those libraries. A part is summed in registers and then added to the tile's total;
the load and the store of the total take about as long as a step or two of the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.dlight.nest import Nest, loops_of, product
from weft.tir.expr import Add, Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_LONG: Final = 512
"""Sums of fewer steps stay one chain of additions; no part has more steps than this."""
_PART: Final = 128
"""How many steps a part should have: so few that the total is still in the first cache after it."""


class Cut(NamedTuple):
    """Where to cut the axes of a reduction, which are in order from the outermost, into parts."""

    axis: int
    """The position of the axis that is cut; a part has the axes after it as a whole."""
    size: int
    """How many values of that axis a part has: from one to all."""


def cut_of(sizes: Sequence[int | None]) -> Cut | None:
    """Where to cut a reduction with axes of these sizes into equal parts; None: nowhere.

    A sum stays one chain if it is short, its length is symbolic, or no divisor of it fits (1021 is
    a prime).

    >>> cut_of([768]), cut_of([32, 3, 3, 16]), cut_of([1021])
    (Cut(axis=0, size=128), Cut(axis=1, size=3), None)
    """
    if (product(sizes) or 0) < _LONG:
        return None
    inside = 1
    for axis, size in reversed(list(enumerate(sizes))):
        assert size is not None
        if inside * size >= _PART:
            steps = _nearest(size, inside)
            return None if steps is None or (axis, steps) == (0, size) else Cut(axis, steps)
        inside *= size
    return None


def _nearest(size: int, inside: int) -> int | None:
    """How many values of an axis make a part of about ``_PART`` steps, ``inside`` steps a value.

    The number divides ``size``, the extent of the axis; None if no divisor comes near enough.
    """
    fitting = [
        count
        for count in range(1, min(size, _LONG // inside) + 1)
        if size % count == 0 and _PART // 2 <= inside * count
    ]
    return min(fitting, key=lambda count: abs(math.log(inside * count / _PART)), default=None)


def in_parts(
    sch: Schedule, nest: Nest, steps: Sequence[Var]
) -> tuple[BlockRV, tuple[Var, ...]] | None:
    """Make two blocks of a long sum of floats: one sums each part, the old one adds up the parts.

    ``steps`` are the axes of the reduction, outermost first. Returns the block that sums the parts
    and the axes of its reduction. Returns None and changes nothing if this is no long sum.
    """
    value = nest.stores[0].value
    cut = cut_of([nest.extent(axis) for axis in steps])
    if cut is None or not isinstance(value, Add) or not value.dtype.is_float:
        return None
    loops = loops_of(sch, nest)
    if not all(axis in loops for axis in steps):
        return None
    order = [loops[axis] for axis in steps]
    sch.reorder(*order)
    outer = order[: cut.axis]
    if cut.size != nest.extent(steps[cut.axis]):
        around, _ = sch.split(order[cut.axis], [None, cut.size])
        outer.append(around)
    block = sch.rfactor(sch.fuse(*outer), 0)
    left = Nest(sch, block).reduced
    rest = steps[cut.axis + 1 :]
    return block, (*[axis for axis in left if axis not in rest], *rest)
