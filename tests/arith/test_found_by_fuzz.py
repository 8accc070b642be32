"""What ``make fuzz`` found in the simplifiers, as small expressions."""

import pytest

from weft import tir
from weft.arith import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect
from weft.tir.stmt_functor import ir_transform


@pytest.mark.parametrize("low", [(1 << 63) - 1, (1 << 63) - 5, 3, 1, 0, -(1 << 63)])
def test_a_comparison_of_data_takes_no_constant_to_where_it_may_wrap(low):
    wide, short = tir.decl_buffer((4,), "int64"), tir.decl_buffer((4,), "int8")
    less = tir.LT(wide[0], tir.Cast("int64", short[0]) - tir.IntImm("int64", 4))
    found = Analyzer().simplify(less)

    def loaded(node):
        return IntImm(node.dtype, low if node.buffer is wide else 5)

    value = Analyzer().simplify(ir_transform(found, None, loaded, ["tir.BufferLoad"]))
    assert bool(value.value) == (low < 1)


def test_a_shift_by_a_variable_of_an_empty_loop_has_the_bounds_of_its_type():
    i = tir.Var("i", "int32")
    analyzer = Analyzer()
    analyzer.bind(i, Range(0, 0))
    bound = analyzer.const_int_bound(tir.shift_left(IntImm("int32", 2), i))
    assert bound.min_value <= bound.max_value


def test_the_extent_of_a_loop_is_positive_inside_of_it_only():
    n, i = tir.Var("n", "int32"), tir.Var("i", "int32")
    analyzer = Analyzer()
    analyzer.bind(i, Range(0, n))
    assert analyzer.can_prove(n - i > 0)
    assert not analyzer.can_prove(n > 0)  # outside of the loop, where it may run no iteration
    j = tir.Var("j", "int32")
    analyzer.bind(j, Range(0, i))
    assert analyzer.can_prove(n - j > 1)  # j has a value, so i has one


def test_a_new_range_of_a_variable_ends_the_old_one():
    n, m, i = [tir.Var(name, "int32") for name in "nmi"]
    analyzer = Analyzer()
    analyzer.bind(i, Range(0, n))
    analyzer.bind(i, Range(0, m), allow_override=True)
    assert analyzer.can_prove(i < m)
    assert not analyzer.can_prove(i < n)


def simplified_once(expr, **extents):
    """The simplified expression, which a fresh Analyzer leaves as it is."""
    variables = {var.name: var for var in collect(expr, tir.Var)}

    def analyzer():
        made = Analyzer()
        for name, extent in extents.items():
            made.bind(variables[name], Range(0, extent))
        return made

    once = analyzer().simplify(expr)
    assert expr_deep_equal(once, analyzer().simplify(once)), str(once)
    return str(once)


def test_digits_joined_to_a_sum_are_terms_of_the_sum_around():
    x, y, z, n = [tir.Var(name, "int32") for name in "xyzn"]
    index = x * 10 + y * 5 + z
    joined = tir.floordiv(index, 2) * 2 + tir.floormod(index, 2)
    assert simplified_once(joined * n, x=3, y=2, z=5) == "(x * 10 + y * 5 + z) * n"
    negative = joined * -3 + (y * 15 + 7)
    assert simplified_once(negative, x=3, y=2, z=5) == "7 - z * 3 - x * 30"


def test_the_remainder_of_joined_digits_has_no_multiples():
    """The digits join to a sum whose own remainder has fewer terms."""
    x, y, z = [tir.Var(name, "int32") for name in "xyz"]
    index = x * 2 + (y * 8 + z)
    joined = tir.floordiv(index, 5) * 5 + tir.floormod(index, 5)
    remainder = tir.floormod(joined, 4)
    assert simplified_once(remainder, x=8, y=5, z=8) == "(x * 2 + z) % 4"
    wide = tir.floormod(joined + 21, 4)
    assert simplified_once(wide, x=8, y=5, z=8) == "(x * 2 + z + 1) % 4"


def test_a_condition_inside_is_as_simple_as_one_alone():
    i = tir.Var("i", "int64")
    joined = tir.floormod(i, 2) + tir.floordiv(i, 2) * 2
    inside = tir.all(0 <= joined, joined < 4)
    chosen = tir.IntImm("int64", 1) - tir.if_then_else(inside, i, tir.IntImm("int64", 0))
    assert "i < " in simplified_once(chosen, i=6)


def test_digits_that_join_to_a_variable_are_not_its_form():
    """Else the remainder of the variable was that of its digits, which was its own, without end."""
    f = tir.Var("f", "int32")
    analyzer = Analyzer()
    analyzer.bind(f, Range(0, 16))
    joined = tir.floordiv(f, 8) * 8 + tir.floormod(f, 8)
    assert analyzer.canonical_simplify(joined) is f
    remainder = tir.floormod(f, 2)
    assert analyzer.canonical_simplify(remainder) is remainder
    halves = tir.floordiv(f, 2) * 2 + remainder
    assert str(analyzer.canonical_simplify(tir.floordiv(halves, 8))) == "f // 8"
