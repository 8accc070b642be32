"""Inverses of iteration maps, at every point."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map import detect_iter_map, inverse_affine_iter_map
from weft.ir.expr import Range, as_prim_expr
from weft.ir.functor import substitute
from weft.support.errors import IRValueError
from weft.tir.expr import Var

I, J, X, Y = (Var(name, "int32") for name in "ijxy")


def inverse(indices, domain, outputs):
    found = detect_iter_map(indices, domain, check_level="bijective")
    assert found.indices, found.errors
    return inverse_affine_iter_map(found.indices, outputs)


@pytest.mark.parametrize(
    ("indices", "domain", "expected"),
    [
        ([I // 16, I % 16], {I: 64}, {I: X * 16 + Y}),
        ([I * 8 + J], {I: 4, J: 8}, {I: X // 8, J: X % 8}),
        ([J, I], {I: 4, J: 8}, {I: Y, J: X}),
        ([I + 3, J], {I: 4, J: 8}, {I: X - 3, J: Y}),
        ([7 - I], {I: 8}, {I: 7 - X}),
        ([I % 8 * 8 + I // 8], {I: 64}, {I: X % 8 * 8 + X // 8}),
    ],
)
def test_table(indices, domain, expected):
    ranges = {loop: Range(0, extent) for loop, extent in domain.items()}
    found = inverse(indices, ranges, [X, Y][: len(indices)])
    assert set(found) == set(expected)
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 64))
    for loop, value in expected.items():
        assert analyzer.can_prove_equal(found[loop], value)


def test_constant_indices_have_no_inverse():
    found = detect_iter_map([as_prim_expr(0), I], {I: Range(0, 4)})
    assert dict(inverse_affine_iter_map(found.indices, [X, Y])) == {I: Y}


def test_errors():
    found = detect_iter_map([I * 2], {I: Range(0, 4)}).indices
    with pytest.raises(IRValueError, match="the stride 2 of i \\* 2 skips values"):
        inverse_affine_iter_map(found, [X])
    with pytest.raises(IRValueError, match="1 indices, but 2 outputs"):
        inverse_affine_iter_map(found, [X, Y])
    overlap = detect_iter_map([I * 3 + J], {I: Range(0, 4), J: Range(0, 4)}).indices
    with pytest.raises(IRValueError, match="not bijective: expected the stride 4, got 3"):
        inverse_affine_iter_map(overlap, [X])


@settings(max_examples=200, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_random_inverses(space_of, random):
    """inverse(map(x)) is x, at every point."""
    space = space_of(random)
    indices = [as_prim_expr(index) for index in space.indices()]
    found = detect_iter_map(indices, space.domain, check_level="bijective")
    for total in found.indices:
        if total.args and abs(total.args[0].scale.value) != 1:
            return
    if not found.indices:
        return
    outputs = [Var(f"o{number}", "int32") for number in range(len(indices))]
    values = inverse_affine_iter_map(found.indices, outputs)
    mapping = dict(zip(outputs, indices, strict=True))
    for loop, dom in space.domain.items():
        if loop in values:
            assert (space.values(substitute(values[loop], mapping)) == space.values(loop)).all()
        else:
            assert dom.extent.value == 1
