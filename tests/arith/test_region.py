"""Bounds of regions: exact ones through iteration maps, others by intervals."""

from __future__ import annotations

from weft.arith.region import (
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
)
from weft.ir.expr import Range
from weft.tir.expr import Var

I, J = (Var(name, "int32") for name in "ij")
LOOPS = {I: Range(0, 8), J: Range(0, 4)}


def ends(sets):
    return [(s.min_value.value, s.max_value.value) for s in sets]


def test_region_bounds():
    region = [Range.from_min_extent(I * 4, 4), Range.from_min_extent(J, 2)]
    assert ends(estimate_region_strict_bound(region, LOOPS)) == [(0, 31), (0, 4)]
    holes = [Range.from_min_extent(I * 4, 2)]
    assert estimate_region_lower_bound(holes, LOOPS) is None
    assert ends(estimate_region_upper_bound(holes, LOOPS)) == [(0, 29)]
