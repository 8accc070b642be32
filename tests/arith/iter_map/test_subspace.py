"""subspace_divide: tables, and random maps whose parts are put together again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft.arith.iter_map import (
    IterMapLevel,
    IterSumExpr,
    detect_iter_map,
    normalize_iter_map_to_expr,
    subspace_divide,
)
from weft.ir.expr import Range, as_prim_expr
from weft.ir.functor import collect
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.expr import Var

I, J, K = (Var(name, "int32") for name in "ijk")
DOMAIN = {I: Range(0, 4), J: Range(0, 6), K: Range(0, 5)}
FLAT = I * 30 + J * 5 + K


def text(mark):
    return str(normalize_iter_map_to_expr(mark.source)), str(mark.extent)


# indices, inner loops, predicate; pairs of (outer, extent), (inner, extent)
TABLE = [
    ([I, J], [J], True, [(("i", "4"), ("0", "1")), (("0", "1"), ("j", "6"))]),
    ([FLAT], [K], True, [(("i * 6 + j", "24"), ("k", "5"))]),
    ([FLAT], [J, K], True, [(("i", "4"), ("j * 5 + k", "30"))]),
    ([FLAT], [I, J, K], True, [(("0", "1"), ("i * 30 + j * 5 + k", "120"))]),
    ([FLAT], [], True, [(("i * 30 + j * 5 + k", "120"), ("0", "1"))]),
    ([FLAT + 7], [K], True, [(("i * 6 + j", "24"), ("k + 7", "5"))]),
    ([FLAT // 5, FLAT % 5], [K], True,
     [(("i * 6 + j", "24"), ("0", "1")), (("0", "1"), ("k", "5"))]),
    ([FLAT // 10, FLAT % 10 // 5], [K], True,
     [(("(i * 6 + j) // 2", "12"), ("0", "1")), (("(i * 6 + j) % 2", "2"), ("0", "1"))]),
    ([I * 5 + K, J], [K], True, [(("i", "4"), ("k", "5")), (("j", "6"), ("0", "1"))]),
    ([I, J * 5 + K], [K], J * 5 + K < 40, [(("i", "4"), ("0", "1")), (("j", "6"), ("k", "5"))]),
    ([op.const(3)], [K], True, [(("0", "1"), ("3", "1"))]),
]  # fmt: skip


@pytest.mark.parametrize(("indices", "inner", "predicate", "expected"), TABLE)
def test_table(indices, inner, predicate, expected):
    pairs = subspace_divide(indices, DOMAIN, inner, predicate)
    assert [tuple(map(text, pair)) for pair in pairs[:-1]] == expected
    assert [mark.extent.value for mark in pairs[-1]] == [1, 1]


@pytest.mark.parametrize(
    ("indices", "inner", "predicate"),
    [
        ([FLAT], [J], True),
        ([FLAT // 3, FLAT % 3], [K], True),
        ([FLAT], [K], FLAT < 100),
        ([I * 2], [I], True),
        ([I * 5 + J], [J], True),
        ([I * J], [J], True),
    ],
)
def test_what_does_not_divide(indices, inner, predicate):
    assert len(subspace_divide(indices, DOMAIN, inner, predicate)) == 0


@pytest.mark.parametrize(
    ("indices", "inner", "predicate", "outer_condition", "inner_condition"),
    [
        ([I * 6 + J, K], [K], I * 6 + J < 20, I * 6 + J < 20, None),
        ([I, J * 5 + K], [J, K], J * 5 + K < 20, None, J * 5 + K < 20),
        ([I, J * 5 + K], [J, K], J * 5 + K > 2, None, op.const(0) <= J * 5 + K + -3),
        ([I, J], [J], op.all(I < 3, J < 5), I < 3, J < 5),
        ([I, J], [J], 2 <= J, None, 2 <= J),
    ],
)
def test_predicates_go_to_their_side(indices, inner, predicate, outer_condition, inner_condition):
    last = subspace_divide(indices, DOMAIN, inner, predicate)[-1]
    for mark, expected in zip(last, (outer_condition, inner_condition), strict=True):
        if expected is None:
            assert mark.extent.value == 1
        else:
            found = [normal(part) for part in (mark.extent, expected)]
            assert structural_equal(*found, map_free_vars=False), found


def normal(condition):
    from weft.arith.analyzer import Analyzer

    return Analyzer().simplify(condition)


def test_symbolic_outer_loop():
    n = Var("n", "int32")
    (outer, inner), _ = subspace_divide([I * 16 + J], {I: Range(0, n), J: Range(0, 16)}, [J])
    assert text(outer) == ("i", "n")
    assert text(inner) == ("j", "16")


@settings(max_examples=300, deadline=None)
@given(random=st.randoms(use_true_random=False), bounded=st.booleans(), trivial=st.booleans())
def test_random_divisions(space_of, random, bounded, trivial):
    """binding = outer * extent(inner) + inner, each over its own loops and all of its extent."""
    space = space_of(random, starts=(0,))
    inner_loops = set(random.sample(space.loops, random.randint(0, len(space.loops))))
    if random.random() < 0.7:
        inner_loops = set(space.loops[random.randint(0, len(space.loops)) :])
    indices = [as_prim_expr(index) for index in space.indices()]
    everywhere = space.points
    assume(not bounded or space.where(space.bound()))
    for level in IterMapLevel:
        options = (space.predicate, level, trivial)
        pairs = subspace_divide(indices, space.domain, inner_loops, *options)
        if not pairs:
            continue
        assert detect_iter_map(indices, space.domain, *options).indices
        for index, (outer, inner) in zip(indices, pairs[:-1], strict=True):
            check_part(space, outer, set(space.loops) - inner_loops, level)
            check_part(space, inner, inner_loops, level)
            outer_value, inner_value = (
                space.values(normalize_iter_map_to_expr(mark.source)) for mark in (outer, inner)
            )
            whole = outer_value * space.values(inner.extent) + inner_value
            assert (whole == space.values(index)).all()
        if level is IterMapLevel.Bijective:
            kept, space.points = space.points, everywhere
            conditions = [space.values(mark.extent).astype(bool) for mark in pairs[-1]]
            wanted = space.values(space.predicate).astype(bool)
            space.points = kept
            assert (np.logical_and(*conditions) == wanted).all()


def check_part(space, mark, loops, level):
    expr = normalize_iter_map_to_expr(mark.source)
    moving = {loop for loop in space.loops if len(set(space.values(loop).tolist())) > 1}
    assert set(collect(expr, Var)) & moving <= loops
    base = space.values(mark.source.base) if isinstance(mark.source, IterSumExpr) else 0
    reached = set((space.values(expr) - base).tolist())
    extent = space.values(mark.extent)[0]
    assert reached <= set(range(extent))
    if level is not IterMapLevel.NoCheck:
        assert len(reached) == extent
