from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map import (
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
)
from weft.ir.expr import Range, as_prim_expr
from weft.ir.functor import substitute
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


def test_levels_by_name():
    fused = [op.floordiv(I * 4 + J, 4)]
    assert detect_iter_map(fused, LOOPS, True, "Surjective").indices
    assert not detect_iter_map(fused, LOOPS, True, "bijective").indices
    with pytest.raises(IRValueError, match="expected one of bijective"):
        detect_iter_map(fused, LOOPS, True, "strict")


def one(extent, base=0, scale=1):
    return (extent, base, scale)


def shape_of(total):
    """(extent, base, scale) of an index."""
    if not total.args:
        return one(1, total.base.value)
    (split,) = total.args
    return one(split.extent.value, total.base.value, split.scale.value)


# Indices and predicate in loops a (6), b (4), c (5) and i (24); level; what each index is, or the
# reason why there is no map.
A, B, C = (Var(name, "int32") for name in "abc")
DOMAIN = {A: Range(0, 6), B: Range(0, 4), C: Range(0, 5), I: Range(0, 24)}
TABLE = [
    ("one loop", [A], True, "surjective", [one(6)]),
    ("offset", [A + 3], True, "surjective", [one(6, 3)]),
    ("constant", [op.const(7)], True, "surjective", [one(1, 7)]),
    ("stride", [A * 2], True, "surjective", [one(6, 0, 2)]),
    ("backwards", [5 - A], True, "surjective", [one(6, 5, -1)]),
    ("two loops", [A, B], True, "surjective", [one(6), one(4)]),
    ("fused", [A * 4 + B], True, "surjective", [one(24)]),
    ("fused, other order", [B * 6 + A], True, "surjective", [one(24)]),
    ("fused stride", [A * 8 + B * 2 + 1], True, "surjective", [one(24, 1, 2)]),
    ("gap", [A * 5 + B], True, "surjective", "do not chain"),
    ("overlap", [A * 3 + B], True, "surjective", [one(19)]),
    ("overlap", [A * 3 + B], True, "bijective", "do not chain"),
    ("overlapping window", [I + C], True, "surjective", [one(28)]),
    ("overlap of strides", [A * 4 + B * 2], True, "surjective", "do not chain"),
    ("upper digits", [op.floordiv(I, 6)], True, "surjective", [one(4)]),
    ("lower digit", [I % 6], True, "surjective", [one(6)]),
    ("all digits", [I // 12, I // 3 % 4, I % 3], True, "surjective", [one(2), one(4), one(3)]),
    ("without the middle", [I // 12, I % 3], True, "surjective", [one(2), one(3)]),
    ("without the middle", [I % 3 * 2 + I // 12], True, "nocheck", [one(6)]),
    ("digit of a stride", [A * 4 // 8], True, "surjective", [one(3)]),
    ("digit of a stride", [A * 2 % 4], True, "surjective", [one(2, 0, 2)]),
    ("digits joined", [I // 4 * 4 + I % 4], True, "surjective", [one(24)]),
    ("digits exchanged", [I % 4 * 6 + I // 4], True, "surjective", [one(24)]),
    ("not a digit", [I // 5], True, "surjective", [one(5)]),
    ("not a digit", [I % 5], True, "surjective", [one(5)]),
    ("not a digit", [I // 5, I % 5], True, "surjective", "has 24 values before padding"),
    ("not a digit", [I // 5, I % 5], True, "nocheck", [one(5), one(5)]),
    ("digit of a digit that does not divide", [I % 6 // 4], True, "surjective", "cover 8"),
    ("too short for a digit", [A % 8], True, "surjective", "has 6 values before padding"),
    ("twice", [A, A + 1], True, "surjective", "overlap"),
    ("part of a sum again", [A * 4 + B, A], True, "surjective", "overlap"),
    ("product", [A * B], True, "surjective", "multiplies two loops"),
    ("divided by a loop", [A // (B + 1)], True, "surjective", "divides by a loop"),
    ("negative divisor", [op.floordiv(A, -2)], True, "surjective", "-2 is not positive"),
    ("stride over divisor", [A * 3 // 2], True, "surjective", "do not divide each other"),
    ("other function", [op.max(A, B)], True, "surjective", "not linear in a"),
    ("one loop is left out", [A], True, "bijective", "loop b is not used"),
    ("below", [A * 4 + B], A * 4 + B < 22, "surjective", [one(22)]),
    ("up to", [A * 4 + B], A * 4 + B <= 21, "surjective", [one(22)]),
    ("above", [A * 4 + B], A * 4 + B > 2, "surjective", [one(21, 3)]),
    ("from", [A * 4 + B], 3 <= A * 4 + B, "surjective", [one(21, 3)]),
    ("between", [A * 4 + B], op.all(3 <= A * 4 + B, A * 4 + B < 22), "surjective", [one(19, 3)]),
    ("likely", [A * 4 + B], op.likely(A * 4 + B < 22), "surjective", [one(22)]),
    ("terms on both sides", [A * 4 + B], A * 4 < 22 - B, "surjective", [one(22)]),
    ("one loop below", [A], A < 4, "surjective", [one(4)]),
    ("one loop and an offset", [A], A + 2 < 4, "surjective", [one(2)]),
    ("useless", [A, B], A * 4 + B < 24, "surjective", [one(6), one(4)]),
    ("other loops", [A], B * 5 + C < 17, "surjective", [one(6)]),
    ("digit", [I % 8, I // 8], op.all(2 <= I % 8, I % 8 < 5), "surjective", [one(3, 2), one(3)]),
    ("inner sum", [A * 17 + B * 5 + C], B * 5 + C < 17, "surjective", [one(102)]),
    ("nested", [A * 17 + B * 5 + C], op.all(B * 5 + C < 17, A * 17 + B * 5 + C < 90),
     "surjective", [one(90)]),
    ("bounded part", [A, B], A * 4 + B < 22, "surjective", "a predicate bounds it with"),
    ("bounded part", [A], A * 4 + B < 22, "surjective", "overlap"),
    ("bounded part", [A], A * 4 + B < 22, "nocheck", [one(6)]),
    ("parts of two", [A], op.all(2 <= B * 5 + C, 1 <= A * 4 + B), "surjective", "share some"),
    ("equality", [A], op.equal(A, 3), "surjective", "no comparison"),
    ("bounded gap", [A], A * 9 + B < 22, "surjective", "is no iterator"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("indices", "predicate", "level", "expected"), [row[1:] for row in TABLE],
    ids=[f"{row[0]}-{number}" for number, row in enumerate(TABLE)],
)  # fmt: skip
def test_table(indices, predicate, level, expected):
    found = detect_iter_map(indices, DOMAIN, predicate, level)
    if isinstance(expected, str):
        assert not found.indices
        assert expected in found.errors[0]
    else:
        assert [shape_of(total) for total in found.indices] == expected, found.errors


def test_loops_that_depend_on_each_other_are_refused():
    found = detect_iter_map([I], {I: Range(0, J), J: Range(0, 4)})
    assert found.errors == ["the domain of i depends on other loops"]


def test_trivial_loops():
    domain = {I: Range(3, 4), J: Range(0, 4)}
    assert shape_of(detect_iter_map([I + J], domain).indices[0]) == (4, 3, 1)
    kept = detect_iter_map([I + J], domain, simplify_trivial_iterators=False).indices[0]
    assert len(kept.args[0].source.source.args) == 2


def test_padding_predicate_says_where():
    found = detect_iter_map([I // 4, I % 4], {I: Range(0, 18)}, True, "nocheck")
    assert [shape_of(total)[0] for total in found.indices] == [5, 4]
    padding = normalize_iter_map_to_expr(found.padding_predicate)
    values = [substitute(padding, {I: op.const(value)}) for value in range(20)]
    assert [Analyzer().can_prove(value) for value in values] == [False] * 18 + [True] * 2


def test_offsets_that_no_padding_serves_are_refused():
    found = detect_iter_map([(I + 1) % 3, (I + 1) // 3 % 4, I % 3], {I: Range(0, 240)})
    assert "padded on the left by" in found.errors[0]
    found = detect_iter_map([(I + 1) % 4], {I: Range(0, 8)}, True, "bijective")
    assert "is no multiple of 4" in found.errors[0]


def test_symbolic_extents():
    n, m = Var("n", "int32"), Var("m", "int32")
    (total,) = detect_iter_map([I * m + J], {I: Range(0, n), J: Range(0, m)}).indices
    assert Analyzer().can_prove_equal(total.args[0].extent, n * m)
    both = detect_iter_map([I // m, I % m], {I: Range(0, m * n)}).indices
    assert structural_equal(both[0].args[0].extent, n, map_free_vars=False)
    assert structural_equal(both[1].args[0].extent, m, map_free_vars=False)
    (padded, _) = detect_iter_map([I // 4, I % 4], {I: Range(0, n)}, True, "nocheck").indices
    assert Analyzer().can_prove_equal(padded.args[0].extent, op.floordiv(n + 3, 4))


def test_digits_of_extents_that_are_sums():
    """A simplified extent has its products spread over the sum; both forms are one number."""
    n, m = Var("n", "int64"), Var("m", "int64")
    high = op.floordiv(n - 1, 16) + 1
    spread = op.floordiv(n - 1, 16) * 7 + 7
    fused = Var("f", "int64")
    for whole in (m * spread, m * (high * 7)):
        for below in (spread, high * 7):
            digits = [fused // below, fused % below // high, fused % high]
            found = detect_iter_map(digits, {fused: Range(0, whole)}, True, "bijective")
            assert not found.errors
            extents = [split.args[0].extent for split in found.indices]
            for extent, wanted in zip(extents, (m, 7, high), strict=True):
                assert Analyzer().can_prove_equal(extent, wanted)


def test_digits_of_extents_that_are_differences():
    n, m, fused = Var("n", "int64"), Var("m", "int64"), Var("f", "int64")
    for whole in (m * (n * 2 - 4), m * (n - 2) * 2, (n * 2 - 4) * m):
        for below in ((n - 2) * 2, n * 2 - 4):
            digits = [fused // below, fused % below // 2, fused % 2]
            found = detect_iter_map(digits, {fused: Range(0, whole)}, True, "bijective")
            assert not found.errors
            extents = [split.args[0].extent for split in found.indices]
            for extent, wanted in zip(extents, (m, n - 2, 2), strict=True):
                assert Analyzer().can_prove_equal(extent, wanted)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_digits_of_a_product_that_a_split_loop_counts(order):
    """What a schedule of element-wise work on n x m x 56 numbers makes, in vectors of 64."""
    n, m = Var("n", "int64"), Var("m", "int64")
    factors = [n, m, op.const(56, "int64")]
    whole = factors[order[0]] * factors[order[1]] * factors[order[2]]
    outer, inner = Var("o", "int64"), Var("i", "int64")
    place = outer * 64 + inner
    loops = {outer: Range(0, op.floordiv(whole + 63, 64)), inner: Range(0, 64)}
    digits = [place // (m * 56), place % (m * 56) // 56, place % 56]
    found = detect_iter_map(digits, loops, op.less(place, whole), "surjective")
    assert not found.errors
    extents = [split.args[0].extent for split in found.indices]
    for extent, wanted in zip(extents, (n, m, 56), strict=True):
        assert Analyzer().can_prove_equal(extent, wanted)


def test_simplify_of_symbolic_digits():
    n = Var("n", "int32")
    index = (I // (n * n) * n + I % (n * n) // n) * n + I % n
    (simple,) = iter_map_simplify([index], {I: Range(0, n * n * 32)})
    assert simple is I


def test_simplify_without_a_predicate_that_is_in_the_way():
    index = I // 4 * 4 + I % 4
    assert iter_map_simplify([index], {I: Range(0, 16), J: Range(0, 8)}, op.equal(J, 3)) == [I]
    unknown = [op.max(I, J)]
    assert iter_map_simplify(unknown, LOOPS)[0] is unknown[0]


def test_normalize_to_iter_sum():
    n = Var("n", "int32")
    domain = {I: Range(0, 9), J: Range(0, 4), K: Range(0, 3)}
    total = normalize_to_iter_sum(K + (J + I * 4 + 2) * n + 3, domain)
    assert [str(normalize_iter_map_to_expr(split)) for split in total.args] == [
        "i * (n * 4)", "j * n", "k"
    ]  # fmt: skip
    assert Analyzer().can_prove_equal(total.base, n * 2 + 3)
    total = normalize_to_iter_sum(op.max(K, n) + I * 2, domain)
    assert str(total.base) == "T.max(k, n)"
    assert len(total.args) == 1
    with pytest.raises(IRValueError, match="the domain of i depends on other loops"):
        normalize_to_iter_sum(I, {I: Range(0, J), J: Range(0, 4)})


def test_nodes_by_hand():
    mark = IterMark(I, 8)
    low = IterSplitExpr(mark, 1, 4, 1)
    total = IterSumExpr([IterSplitExpr(mark, 4, 2, 4), low], 5)
    assert total.dtype == low.dtype == "int32"
    assert str(normalize_iter_map_to_expr(total)) == "i // 4 * 4 + i % 4 + 5"
    assert str(IterSumExpr([low], 5)) == (
        "IterSum([IterSplit(IterMark(i, extent=8), lower_factor=1, extent=4, scale=1)], 5)"
    )


@settings(max_examples=300, deadline=None)
@given(random=st.randoms(use_true_random=False), bounded=st.booleans(), trivial=st.booleans())
def test_random_maps(space_of, random, bounded, trivial):
    """Values are kept; surjective indices reach every combination, bijective ones once."""
    space = space_of(random)
    indices = [as_prim_expr(index) for index in space.indices()]
    assume(not bounded or space.where(space.bound()))
    for level in IterMapLevel:
        found = detect_iter_map(indices, space.domain, space.predicate, level, trivial)
        if not found.indices:
            assert found.errors
            continue
        space.assert_map(indices, found, level)


@settings(max_examples=100, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_random_simplification_keeps_values(space_of, random):
    space = space_of(random)
    indices = [as_prim_expr(index) for index in space.indices()]
    simple = iter_map_simplify(indices, space.domain, True, "nocheck")
    for before, after in zip(indices, simple, strict=True):
        assert (space.values(before) == space.values(after)).all()
    normal = normalize_to_iter_sum(indices[0], space.domain)
    assert (space.values(indices[0]) == space.values(normalize_iter_map_to_expr(normal))).all()


N_, M_ = Var("n", "int32"), Var("m", "int32")
SYMBOLIC = [
    op.const(4),
    op.const(3),
    N_,
    M_,
    N_ * 4,
    N_ * M_,
    N_ * 2,
    op.floordiv(N_ + 3, 4),
    N_ + 1,
]


@settings(max_examples=100, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_random_symbolic_maps(space_of, random):
    """What is said of extents n and m holds for numbers in their place."""
    extents = [random.choice(SYMBOLIC) for _ in range(2)]
    total = J * extents[0] + I if random.random() < 0.8 else J * random.choice(SYMBOLIC) + I
    divisor = random.choice(SYMBOLIC)
    indices = [total // divisor, total % divisor][: random.randint(1, 2)]
    domain = {I: Range(0, extents[0]), J: Range(0, extents[1])}
    predicate = total < random.choice(SYMBOLIC) if random.random() < 0.3 else op.const(True)
    found = detect_iter_map(indices, domain, predicate)
    for n, m in ((1, 1), (1, 3), (2, 3), (3, 2), (4, 4), (5, 3)):
        sizes = {N_: op.const(n), M_: op.const(m)}
        space = space_of(random)
        space.loops = [I, J]
        numbers = [Analyzer().simplify(substitute(extent, sizes)).value for extent in extents]
        space.points = np.array(list(itertools.product(*[range(number) for number in numbers])))
        if not found.indices or not space.where(substitute(predicate, sizes)):
            continue
        columns, axes = [], []
        for index, sum_ in zip(indices, found.indices, strict=True):
            columns.append(space.values(substitute(index, sizes)))
            plain = substitute(normalize_iter_map_to_expr(sum_), sizes)
            assert (columns[-1] == space.values(plain)).all()
            base = space.values(substitute(sum_.base, sizes))[0]
            digits = [
                [space.values(substitute(part, sizes))[0] for part in (split.scale, split.extent)]
                for split in sum_.args
            ]
            scale, extent = digits[0] if digits else (1, 1)
            axes.append([base + scale * number for number in range(extent)])
        reached = set(zip(*[column.tolist() for column in columns], strict=True))
        assert reached == set(itertools.product(*axes))
