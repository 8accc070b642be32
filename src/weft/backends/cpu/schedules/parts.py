"""Long sums in parts, for their accuracy: a part in registers, then added to the total.

Each addition rounds the sum so far, so the error of ``n`` numbers, one added after the other, grows
with ``n``; that of parts of ``p`` numbers, which are added after it, with ``p + n / p`` (Higham,
"Accuracy and Stability of Numerical Algorithms", 2002, section 4.2). Libraries of products have
such parts, as they cut the reduction for the caches (Goto and van de Geijn, 2008): a model whose
sums are one chain is further from the exact result than theirs. A tile's total is read and written
once a part, which takes the time of a step or two.
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
"""Steps of a sum that is cut; shorter ones are one chain, and so are parts."""
_PART: Final = 128
"""Steps of a part, near enough: so few that the total is still in the first cache."""


class Cut(NamedTuple):
    """Of the axes of a reduction, outermost first: where those of a part start."""

    axis: int
    """The place of the axis that is cut; all after it are in a part as a whole."""
    size: int
    """How much of it a part has: at least one step, perhaps all."""


def cut_of(sizes: Sequence[int | None]) -> Cut | None:
    """Where to cut a reduction with these axes into equal parts; None for one chain.

    That is what a sum stays of an unknown length, or of one that has no fitting divisor.

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
    """The divisor of an axis that makes parts nearest to ``_PART``; None for none in reach."""
    fitting = [
        count for count in range(1, min(size, _LONG // inside) + 1)
        if size % count == 0 and _PART // 2 <= inside * count
    ]  # fmt: skip
    return min(fitting, key=lambda count: abs(math.log(inside * count / _PART)), default=None)


def in_parts(
    sch: Schedule, nest: Nest, steps: Sequence[Var]
) -> tuple[BlockRV, tuple[Var, ...]] | None:
    """Make a sum of floats two blocks: the parts, and their sum, which keeps its name.

    ``steps`` are the axes of the reduction, outermost first. Returns the block of the parts, and
    its axes of the reduction; None, and nothing changed, where it is no long sum.
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
    block = sch.rfactor(sch.fuse(*outer) if len(outer) > 1 else outer[0], 0)
    left = Nest(sch, block).reduced
    rest = steps[cut.axis + 1 :]
    return block, (*[axis for axis in left if axis not in rest], *rest)
