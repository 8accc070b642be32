"""What is known of two extents that broadcast."""

import pytest

from weft.relax.ir.shape_arith import broadcast, broadcast_extents
from weft.tir import op
from weft.tir.expr import SizeVar

N, M = SizeVar("n", "int64"), SizeVar("m", "int64")
SPLIT = (N - 1) // 32 * 2 + 2

DECIDED = [
    ([N], [1], [N]),
    ([1], [N], [N]),
    ([N], [N + 0], [N]),
    ([N], [96], [96]),  # n is 96 or 1
    ([N], [0], [0]),
    ([op.min(N, 512)], [N], [N]),  # beyond 512 they differ, and neither is 1
    ([N], [op.max(op.min(N, 512), 0)], [N]),
    ([(N - 1) // 16 + 1], [SPLIT], [SPLIT]),  # an even number is not 1
    ([N, 4], [M, 1, 4], [M, N, 4]),
]


@pytest.mark.parametrize(("lhs", "rhs", "wanted"), DECIDED)
def test_an_extent_that_is_not_1_is_that_of_both(lhs, rhs, wanted):
    assert [str(dim) for dim in broadcast(lhs, rhs)] == [str(dim) for dim in wanted]


def test_what_depends_on_the_symbols_is_not_known_and_the_rest_is():
    assert broadcast_extents([N, 4, 1], [M, 4, M]) == [None, 4, M]
    assert broadcast([N, 4], [M, 4]) is None


def test_extents_that_never_agree():
    assert broadcast([N, 4], [M, 3]) == "4 and 3 at axis -1"
