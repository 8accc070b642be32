"""Iteration maps where arithmetic wraps: loops of narrow and unsigned types, ends of int32."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.arith.iter_map import (
    IterMapLevel,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)
from weft.ir.expr import IntImm, Range, integer_range
from weft.ir.functor import substitute
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir import op

TYPES = ("int8", "uint8", "int16", "uint32")
I, J, K = (nodes.Var(name, "int32") for name in "ijk")


def loop_of(dtype, low, extent):
    """A loop variable, and its domain."""
    var = nodes.Var("v", dtype)
    return var, {var: Range.from_min_extent(IntImm(dtype, low), IntImm(dtype, extent))}


def number(dtype, value):
    return IntImm(dtype, value)


def values_in(dtype, low, extent, keeps):
    """The values of a loop for which ``keeps`` holds, in numpy's arithmetic of that type."""
    values = np.arange(low, low + extent).astype(dtype)
    return values[[bool(keeps(value)) for value in values[:, None]]].tolist()


def values_of_map(var, domain, predicate):
    """The values that the map of ``[var]`` has; None where there is no map."""
    found = detect_iter_map([var], domain, predicate)
    if not found.indices:
        assert found.errors
        return None
    (total,) = found.indices
    if not total.args:
        return [total.base.value]
    (split,) = total.args
    return [total.base.value + split.scale.value * step for step in range(split.extent.value)]


LESS, AT_MOST, MORE, AT_LEAST = np.less, np.less_equal, np.greater, np.greater_equal
NODE = {LESS: nodes.LT, AT_MOST: nodes.LE, MORE: nodes.GT, AT_LEAST: nodes.GE}

# Type, first value and extent of a loop, comparison, what it is compared with.
PLAIN_BOUNDS = [
    ("int8", 0, 127, LESS, 100), ("int8", 0, 127, AT_MOST, 126), ("int8", 0, 127, AT_MOST, 127),
    ("int8", 1, 127, LESS, 100), ("int8", 1, 127, LESS, 127), ("int8", 1, 127, AT_MOST, 127),
    ("int8", 1, 127, AT_LEAST, 50), ("int8", 1, 127, MORE, 126), ("int8", 27, 101, LESS, 28),
    ("int8", -128, 127, LESS, -100), ("int8", -128, 127, AT_LEAST, -128),
    ("int8", -128, 127, MORE, -128), ("int8", -128, 127, AT_MOST, -128),
    ("int8", -100, 120, LESS, 127), ("int8", -100, 120, AT_LEAST, 0),
    ("uint8", 0, 255, AT_MOST, 255), ("uint8", 1, 255, AT_MOST, 255), ("uint8", 1, 255, LESS, 9),
    ("uint8", 200, 56, LESS, 220), ("uint8", 200, 56, MORE, 220), ("uint8", 200, 56, AT_LEAST, 0),
    ("uint8", 200, 56, AT_MOST, 254), ("uint8", 200, 56, MORE, 254),
    ("int16", 32700, 68, LESS, 32767), ("int16", 32700, 68, MORE, 32766),
    ("uint16", 65500, 36, AT_MOST, 65535), ("uint16", 65500, 36, MORE, 65530),
    ("uint32", 2**32 - 9, 9, LESS, 2**32 - 1), ("uint32", 2**32 - 9, 9, AT_LEAST, 2**32 - 3),
    ("int32", 0, 100, AT_MOST, 2**31 - 1), ("int32", 0, 100, LESS, 2**31 - 1),
    ("int32", 0, 100, AT_LEAST, -(2**31)), ("int32", 2**31 - 9, 9, LESS, 2**31 - 3),
    ("int64", 0, 100, AT_MOST, 2**63 - 1), ("int64", 0, 100, AT_LEAST, -(2**63)),
    ("uint64", 0, 100, AT_MOST, 2**64 - 1), ("uint64", 3, 100, LESS, 50),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "low", "extent", "compare", "limit"), PLAIN_BOUNDS)
def test_a_loop_is_cut_where_its_bound_says(dtype, low, extent, compare, limit):
    var, domain = loop_of(dtype, low, extent)
    wanted = values_in(dtype, low, extent, lambda value: compare(value, np.array([limit], dtype)))
    assert values_of_map(var, domain, NODE[compare](var, number(dtype, limit))) == wanted


@pytest.mark.parametrize(("dtype", "low", "extent", "compare", "limit"), PLAIN_BOUNDS)
def test_the_bound_may_stand_on_the_left(dtype, low, extent, compare, limit):
    var, domain = loop_of(dtype, low, extent)
    wanted = values_in(dtype, low, extent, lambda value: compare(np.array([limit], dtype), value))
    found = values_of_map(var, domain, NODE[compare](number(dtype, limit), var))
    assert found == wanted or (found is None and not wanted)


# Type, first value and extent, what is added to the loop, comparison, limit: wraps in every row.
SHIFTED_BOUNDS = [
    ("int8", 0, 127, 100, LESS, 120), ("int8", 0, 127, 1, AT_MOST, 5),
    ("int8", -128, 127, -5, LESS, 100), ("int8", -100, 127, -50, AT_LEAST, -120),
    ("uint8", 0, 255, -3, LESS, 5), ("uint8", 0, 255, -3, MORE, 5),
    ("uint8", 200, 56, 60, AT_MOST, 3), ("int16", 32700, 60, 100, LESS, 0),
    ("uint32", 0, 10, -3, LESS, 5), ("uint32", 2**32 - 9, 9, 5, LESS, 2),
    ("uint64", 0, 10, -3, LESS, 5),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "low", "extent", "shift", "compare", "limit"), SHIFTED_BOUNDS)
def test_a_bound_of_a_sum_that_wraps_cuts_no_range(dtype, low, extent, shift, compare, limit):
    """``i + 100 < 120`` of int8 holds for i < 20, and where the sum wraps to a negative number."""
    var, domain = loop_of(dtype, low, extent)
    by = number(dtype, abs(shift))
    total = var + by if shift > 0 else var - by
    found = values_of_map(var, domain, NODE[compare](total, number(dtype, limit)))
    assert found is None or found == values_in(
        dtype, low, extent,
        lambda value: compare(
            value + np.array([abs(shift)], dtype) if shift > 0
            else value - np.array([abs(shift)], dtype), np.array([limit], dtype)
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    "predicate",
    [I + 10 < -(2**31) + 5, I - 10 >= 2**31 - 5, I + 10 <= -(2**31), I - 10 > 2**31 - 1],
    ids=str,
)
def test_a_bound_beyond_int32_is_no_bound_at_the_other_end(predicate):
    """The limit moved to the other side leaves the type: it may not come back as its opposite."""
    found = detect_iter_map([I], {I: Range(0, 100)}, predicate)
    assert not found.indices or found.indices[0].args[0].extent.value <= 0


def test_a_predicate_that_never_holds_leaves_no_value():
    for predicate in (I >= 10, I < -3, I > 2**31 - 1):
        found = detect_iter_map([I], {I: Range(0, 8)}, predicate)
        assert not found.indices or found.indices[0].args[0].extent.value == 0


def test_loops_of_which_one_bounds_the_other():
    for dtype in TYPES:
        a, b = nodes.Var("a", dtype), nodes.Var("b", dtype)
        domain = {
            var: Range.from_min_extent(number(dtype, 0), number(dtype, 100)) for var in (a, b)
        }
        for predicate in (nodes.LT(a, b - number(dtype, 100)), nodes.LT(a + b, number(dtype, 100))):
            assert not detect_iter_map([a, b], domain, predicate).indices


def test_a_symbol_of_a_narrow_type_bounds_nothing():
    """``i <= n`` is ``i < n + 1`` but where n is the largest number of its type."""
    a, n = nodes.Var("a", "uint8"), nodes.Var("n", "uint8")
    domain = {a: Range.from_min_extent(number("uint8", 2), number("uint8", 9))}
    for kind in NODE.values():
        found = detect_iter_map([a], domain, kind(a, n))
        assert not found.indices
        assert "uint8" in found.errors[0]


@settings(max_examples=150, deadline=None)
@given(random=st.randoms(use_true_random=False), dtype=st.sampled_from(TYPES))
def test_random_maps_of_narrow_loops(space_of, random, dtype):
    """Values are kept, and all combinations are reached, whatever is added and compared."""
    low, high = integer_range(DataType(dtype))
    starts = (0, 0, 1, max(low, -3), low, high - 30)
    space = space_of(random, sizes=(1, 2, 3, 7, 30), starts=starts, dtype=dtype)

    def constant():
        at = random.choice([low, high, 0, *space.points[random.randrange(len(space.points))]])
        return number(dtype, min(high, max(low, int(at) + random.randint(-2, 2))))

    def term(depth):
        var = random.choice(space.loops)
        if depth == 0:
            return var
        kind = random.choice([nodes.Add, nodes.Sub, nodes.Add, nodes.Mul])
        return kind(term(depth - 1), random.choice([constant(), term(0)]))

    conditions = [
        random.choice(list(NODE.values()))(term(random.choice([0, 0, 1])), constant())
        for _ in range(random.randint(0, 2))
    ]
    indices = [term(random.choice([0, 0, 0, 1])) for _ in range(random.randint(1, 2))]
    predicate = op.all(*conditions) if conditions else op.const(True)
    inside = space.where(predicate)
    for level in IterMapLevel:
        found = detect_iter_map(indices, space.domain, predicate, level)
        if found.indices and inside:
            space.assert_map(indices, found, level)
    for index, simple in zip(
        indices, iter_map_simplify(indices, space.domain, predicate), strict=True
    ):
        assert (space.values(index) == space.values(simple)).all()


@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False), dtype=st.sampled_from(TYPES))
def test_an_index_of_casts_keeps_its_values(space_of, random, dtype):
    """Sums that wrap before they are cast to an index stay what they are, in the base."""
    space = space_of(random, sizes=(1, 2, 4, 40), starts=(0, 100), dtype=dtype)

    def narrow():
        a, b = random.choice(space.loops), random.choice(space.loops)
        return random.choice([a, a + b, a - b, a * b, a + number(dtype, 100)])

    index = nodes.Cast("int32", narrow()) * random.choice([1, 2, 4])
    index = index + nodes.Cast("int32", narrow()) + random.randint(-3, 3)
    index = random.choice([index, op.floordiv(index, 4), op.floormod(index, 4)])
    total = normalize_to_iter_sum(index, space.domain)
    assert (space.values(normalize_iter_map_to_expr(total)) == space.values(index)).all()
    (simple,) = iter_map_simplify([index], space.domain)
    assert (space.values(simple) == space.values(index)).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_narrow_loops_and_their_inverse(dtype):
    a, b = nodes.Var("a", dtype), nodes.Var("b", dtype)
    low, high = integer_range(DataType(dtype))
    first = {a: low, b: high - 9}
    domain = {
        var: Range.from_min_extent(number(dtype, start), number(dtype, 10))
        for var, start in first.items()
    }
    x, y = nodes.Var("x", dtype), nodes.Var("y", dtype)
    found = detect_iter_map([b, a], domain, check_level="bijective")
    values = inverse_affine_iter_map(found.indices, [x, y])
    for at_a, at_b in itertools.product(range(10), range(10)):
        outputs = {x: number(dtype, first[b] + at_b), y: number(dtype, first[a] + at_a)}
        for var, value in ((a, outputs[y]), (b, outputs[x])):
            assert value_of(substitute(values[var], outputs)) == value.value


def value_of(expr):
    """A constant expression, in numpy's arithmetic of its type."""
    if isinstance(expr, IntImm):
        return expr.value
    a, b = (np.array([value_of(side)], str(expr.dtype)) for side in (expr.a, expr.b))
    return int((a + b if isinstance(expr, nodes.Add) else a - b)[0])


@pytest.mark.parametrize(
    ("dtype", "low", "extent", "kept", "condition"),
    [
        ("int8", 1, 127, 50, "v >= T.int8(50)"),
        ("uint8", 200, 56, 250, "v >= T.uint8(250)"),
        ("int8", 0, 100, 50, "v >= T.int8(50)"),  # its range says that it is less than 100
    ],
)
def test_a_division_asks_no_narrow_loop_to_stay_below_what_its_type_cannot_say(
    dtype, low, extent, kept, condition
):
    var, domain = loop_of(dtype, low, extent)
    predicate = nodes.LE(number(dtype, kept), var)
    *_, (outer, inner) = subspace_divide([var, K], {**domain, K: Range(0, 4)}, [K], predicate)
    assert str(outer.extent) == condition
    assert str(inner.extent) == "T.bool(True)"
