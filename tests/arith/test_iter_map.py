from __future__ import annotations

import itertools
import re

import pytest

from weft.arith.iter_map import (
    IterMapLevel,
    detect_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
)
from weft.arith.region import (
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
)
from weft.ir.expr import Range
from weft.ir.structural import structural_equal
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import Var

I, J, K, N = (Var(name, "int32") for name in "ijkn")
LOOPS = {I: Range(0, 8), J: Range(0, 4)}


def extents(indices, iters, **options):
    found = detect_iter_map(indices, iters, **options)
    assert found.indices, found.errors
    return [sum_.args[0].extent.value if sum_.args else 1 for sum_ in found.indices]


def test_fused_loops_are_one_to_one():
    assert extents([I * 4 + J], LOOPS) == [32]
    assert extents([J + I * 4 + 3], LOOPS) == [32]


def test_split_loop_has_two_digits():
    assert extents([op.floordiv(I, 4), op.floormod(I, 4)], {I: Range(0, 8)}) == [2, 4]


def test_fuse_then_split():
    flat = I * 4 + J
    assert extents([op.floordiv(flat, 16), op.floormod(flat, 16)], LOOPS) == [2, 16]


@pytest.mark.parametrize(
    ("indices", "reason"),
    [
        ([I * 4 + J * 2], "strides"),
        ([I * J], "multiplies two loops"),
        ([I, I], "overlap"),
        ([op.floordiv(I, 3), op.floormod(I, 3)], "not surjective: .* has 8 values before padding"),
    ],
)
def test_what_is_not_one_to_one_says_why(indices, reason):
    found = detect_iter_map(indices, LOOPS)
    assert not found.indices
    assert re.search(reason, found.errors[0])


def test_bijective_wants_every_loop():
    assert extents([I], LOOPS) == [8]
    assert not detect_iter_map([I], LOOPS, check_level=IterMapLevel.Bijective).indices
    assert extents([I, J], LOOPS, check_level=IterMapLevel.Bijective) == [8, 4]


def test_predicate_cuts_the_tail():
    assert extents([I * 4 + J], LOOPS, predicate=I * 4 + J < 30) == [30]


def test_symbolic_outer_loop():
    found = detect_iter_map([I * 4 + J], {I: Range(0, N), J: Range(0, 4)})
    assert structural_equal(found.indices[0].args[0].extent, N * 4)


def test_normalized_expression_has_the_same_values():
    flat = I * 4 + J
    indices = [op.floordiv(flat, 16), op.floormod(flat, 16)]
    found = detect_iter_map(indices, LOOPS)
    simplified = [normalize_iter_map_to_expr(index) for index in found.indices]
    again = iter_map_simplify(indices, LOOPS)
    for mine, its in zip(simplified, again, strict=True):
        assert structural_equal(mine, its)


def test_random_maps_are_one_to_one():
    """Brute force: accepted maps never send two loop points to one index."""
    pieces = [I, J, I * 4, J * 8, op.floordiv(I, 2), op.floormod(I, 2),
              op.floordiv(I * 4 + J, 8), op.floormod(I * 4 + J, 8), I * 4 + J,
              op.floormod(I, 4) * 4 + J, J * 2 + 1]  # fmt: skip
    accepted = 0
    for pair in itertools.product(pieces, repeat=2):
        found = detect_iter_map(list(pair), LOOPS, check_level=IterMapLevel.Bijective)
        if not found.indices:
            continue
        accepted += 1
        points = {tuple(evaluate(e, i, j) for e in pair) for i in range(8) for j in range(4)}
        assert len(points) == 32, pair
    assert accepted > 5


def evaluate(expr, i, j):
    from weft.arith.analyzer import Analyzer
    from weft.ir.functor import substitute

    return Analyzer().simplify(substitute(expr, {I: op.const(i), J: op.const(j)})).value


def ends(sets):
    return [(s.min_value.value, s.max_value.value) for s in sets]


def test_region_bounds():
    region = [Range.from_min_extent(I * 4, 4), Range.from_min_extent(J, 2)]
    assert ends(estimate_region_strict_bound(region, LOOPS)) == [(0, 31), (0, 4)]
    holes = [Range.from_min_extent(I * 4, 2)]
    assert estimate_region_lower_bound(holes, LOOPS) is None
    assert ends(estimate_region_upper_bound(holes, LOOPS)) == [(0, 29)]


def test_levels_by_name():
    fused = [op.floordiv(I * 4 + J, 4)]
    assert detect_iter_map(fused, LOOPS, True, "Surjective").indices
    assert not detect_iter_map(fused, LOOPS, True, "bijective").indices
    with pytest.raises(IRValueError, match="expected one of bijective"):
        detect_iter_map(fused, LOOPS, True, "strict")
