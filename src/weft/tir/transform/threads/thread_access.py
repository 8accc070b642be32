"""What threads read and write in one storage scope, and whether two accesses conflict.

Two accesses of one buffer, at least one of them a store, conflict unless it is proved that
different threads never access the same element: either the regions are disjoint, or every thread
accesses a part of its own. ThreadSync puts a barrier between conflicting accesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.canonical_simplify import as_sum
from weft.arith.int_set import IntervalSet, eval_set, neg_inf, pos_inf
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.buffer import Buffer
from weft.tir.expr import LT, Var


@dataclass(frozen=True)
class Access:
    """A load or store; ``region`` is None where it may be anywhere."""

    data: Var
    buffer: Buffer | None
    region: tuple[IntervalSet, ...] | None
    is_write: bool

    def relaxed(self, domains: Mapping[Var, IntervalSet], analyzer: Analyzer) -> Access:
        """The access over all values of some variables."""
        if self.region is None:
            return self
        wide = tuple([eval_set(part, domains, analyzer) for part in self.region])
        if any(part.min_value is neg_inf() or part.max_value is pos_inf() for part in wide):
            return replace(self, region=None)
        return replace(self, region=wide)


class Conflicts:
    """Decides whether accesses conflict among ``threads`` (variable to extent)."""

    def __init__(self, threads: Mapping[Var, PrimExpr], analyzer: Analyzer) -> None:
        self.threads = {v: e for v, e in threads.items() if getattr(e, "value", None) != 1}
        self.analyzer = analyzer
        self.domains = {
            var: IntervalSet(fold.const(var.dtype, 0), fold.sub(extent, fold.const(var.dtype, 1)))
            for var, extent in self.threads.items()
        }

    def between(self, first: list[Access], second: list[Access]) -> bool:
        """Whether an access of one list conflicts with one of the other."""
        for a in first:
            for b in second:
                if a.data is b.data and (a.is_write or b.is_write) and self.meet(a, b):
                    return True
        return False

    def meet(self, a: Access, b: Access) -> bool:
        """Whether different threads may access the same element."""
        if not self.threads:
            return False
        if a.region is None or b.region is None or a.buffer is not b.buffer:
            return True
        if len(a.region) != len(b.region):
            return True
        return not self.apart(a, b) and not self.private(a, b)

    def apart(self, a: Access, b: Access) -> bool:
        """Whether the regions never overlap, whatever the threads."""
        assert a.region is not None
        assert b.region is not None
        for mine, its in zip(a.region, b.region, strict=True):
            x = eval_set(mine, self.domains, self.analyzer)
            y = eval_set(its, self.domains, self.analyzer)
            if self.before(x.max_value, y.min_value) or self.before(y.max_value, x.min_value):
                return True
        return False

    def before(self, high: Any, low: Any) -> bool:
        if high is pos_inf() or low is neg_inf():
            return False
        return self.analyzer.can_prove(LT(high, low))

    def private(self, a: Access, b: Access) -> bool:
        """Whether each thread's elements of both are its own: flat ranges of fixed width, placed by
        a mixed-radix number of the thread.
        """
        flat_a, flat_b = flat_range(a), flat_range(b)
        if flat_a is None or flat_b is None:
            return False
        simple = self.analyzer.simplify
        offset = simple(fold.sub(flat_b[0], flat_a[0]))
        width_a, width_b = [simple(fold.sub(high, low)) for low, high in (flat_a, flat_b)]
        if not (
            isinstance(offset, IntImm)
            and isinstance(width_a, IntImm)
            and isinstance(width_b, IntImm)
        ):
            return False
        low = min(0, offset.value)
        high = max(width_a.value, offset.value + width_b.value)
        return self.separates(flat_a[0], high - low + 1)

    def separates(self, start: PrimExpr, width: int) -> bool:
        """Whether ``[start, start + width)`` is disjoint for different threads."""
        steps: list[tuple[int, int]] = []
        left = set(self.threads)
        for split in as_sum(self.analyzer.canonical_form(start)).splits:
            var = split.index
            if not split.is_plain or not isinstance(var, Var) or var not in left:
                continue
            extent = self.threads[var]
            if not isinstance(extent, IntImm):
                return False
            left.discard(var)
            steps.append((abs(split.scale), extent.value))
        if left:
            return False
        reach = width
        for step, size in sorted(steps):
            if step < reach:
                return False
            reach = step * (size - 1) + reach
        return True


def flat_range(access: Access) -> tuple[PrimExpr, PrimExpr] | None:
    """The lowest and the highest offset of an access."""
    buffer, region = access.buffer, access.region
    if buffer is None or region is None:
        return None
    dtype = region[0].min_value.dtype if region else None
    if dtype is None:
        return None
    low = high = fold.const(dtype, 0)
    extents = list(buffer.strides or buffer.shape)
    for axis, part in enumerate(region):
        extent = extents[axis]
        if not isinstance(extent, IntImm):
            return None
        scale = fold.const(dtype, extent.value)
        if buffer.strides:
            low = fold.add(low, fold.mul(part.min_value, scale))
            high = fold.add(high, fold.mul(part.max_value, scale))
        else:
            low = fold.add(fold.mul(low, scale), part.min_value)
            high = fold.add(fold.mul(high, scale), part.max_value)
    return low, high
