"""The canonical form: digits of linear sums, and where a constant must stay inside of them."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.expression_text import analyzer_of, expression
from tests.lib.wrapping import ARITHMETIC, COMPARISONS, value_of
from weft.arith.analyzer import Analyzer
from weft.arith.canonical_simplify import as_sum
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.linear_form import Split, Sum
from weft.ir.expr import IntImm
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var

NAMES = {name: Var(name, "int32") for name in "ijkn"} | {
    "w": Var("w", "int64"), "b": Var("b", "int8"), "u": Var("u", "uint8"), "p": Var("p", "bool"),
}  # fmt: skip
I, J, N = NAMES["i"], NAMES["j"], NAMES["n"]
DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)
LOW, HIGH = {"i": -2, "j": 0}, {"i": 3, "j": 4}
POINTS = list(itertools.product(range(-2, 4), range(5)))


def simplifier():
    """An Analyzer that knows -2 <= i <= 3 and 0 <= j <= 4."""
    analyzer = Analyzer()
    for var in (I, J):
        analyzer.update(var, ConstIntBound(LOW[var.name], HIGH[var.name]))
    return analyzer


def linear(a, b, c):
    return nodes.Add(nodes.Add(nodes.Mul(I, number(a)), nodes.Mul(J, number(b))), number(c))


def number(value):
    return IntImm("int32", value)


def keeps(before, after):
    return all(
        value_of(before, {"i": i, "j": j}) == value_of(after, {"i": i, "j": j}) for i, j in POINTS
    )


@pytest.mark.parametrize("kind", DIVISIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("by", [2, 3, 6, -3])
def test_digits_of_linear_sums_keep_their_values(kind, by):
    for a, b, c in itertools.product((-4, 1, 6), (0, 1, 5), (-5, 0, 7)):
        expr = kind(linear(a, b, c), number(by))
        result = simplifier().canonical_simplify(expr)
        assert keeps(expr, result), (str(expr), str(result))


@pytest.mark.parametrize("outer", DIVISIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("inner", DIVISIONS, ids=lambda kind: kind.__name__)
def test_digits_of_digits_keep_their_values(outer, inner):
    for first, second, scale in itertools.product((2, 4, 6), (2, 3), (1, -4)):
        digit = inner(linear(4, 1, 1), number(first))
        expr = outer(nodes.Add(nodes.Mul(digit, number(scale)), J), number(second))
        result = simplifier().canonical_simplify(expr)
        assert keeps(expr, result), (str(expr), str(result))


@pytest.mark.parametrize("kind", COMPARISONS, ids=lambda kind: kind.__name__)
def test_comparisons_of_linear_sums_keep_their_truth(kind):
    for a, b, c, d in itertools.product((-4, 1, 4), (1, 5), (0, 6), (-8, 1)):
        expr = kind(linear(a, b, c), nodes.Add(nodes.Mul(J, number(3)), number(d)))
        result = simplifier().canonical_simplify(expr)
        assert keeps(expr, result), (str(expr), str(result))


# Expression, what is known, its canonical form. Rows come in pairs: the form, and a near miss.
# fmt: off
FORMS = [
    ("(i*8 + j) // 8", "j < 8", "i"),
    ("(i*8 + j) // 8", "j < 9", "j // 8 + i"),
    ("(i*8 + j) % 8", "j < 8", "j"),
    ("(i*8 + j) % 8", "j < 9", "j % 8"),
    ("(i*8 + j + 3) // 8", "j < 5", "i"),
    ("(i*8 + j + 3) // 8", "j < 6", "(j + 3) // 8 + i"),
    ("(i*8 + j + 16) // 8", "j < 8", "i + 2"),
    ("(i*8 + j - 8) % 8", "j < 8", "j"),
    ("(i*12 + j) // 8", "j < 4", "(i * 12 + j) // 8"),
    ("(i*12 + j) // 4", "j < 4", "i * 3"),
    ("(i*12 + k*4 + j) // 8", "j < 4", "(i * 3 + k) // 2"),
    ("(i*12 + k*4 + j) % 8", "j < 4", "(i * 3 + k) % 2 * 4 + j"),
    ("(i*12 + k*4 + j) // 8", "j < 5", "(i * 12 + k * 4 + j) // 8"),
    ("(i*96 + k*16 + n*64 + j + 5) // 64", "j < 11", "(i * 6 + k) // 4 + n"),
    ("i // 4 // 3", "", "i // 12"),
    ("i // -4 // 3", "", "i // -4 // 3"),
    ("i // 4 * 4 + i % 4", "", "i"),
    ("i // 4 * 4 + i % 8", "", "i // 4 * 4 + i % 8"),
    ("i % 8 // 4 * 4 + i % 4", "", "i % 8"),
    ("i % 8 // 4 * 5 + i % 4", "", "i % 8 // 4 * 5 + i % 4"),
    ("i % 12 % 4", "", "i % 4"),
    ("i % 10 % 4", "", "i % 10 % 4"),
    ("i % 4 % 12", "", "i % 4"),
    ("i % 12 // 4 % 3", "", "i % 12 // 4"),
    ("i % 24 // 4 % 3", "", "i % 12 // 4"),
    ("i // 4 % 3", "", "i % 12 // 4"),
    ("i // 4 % 3", "i < 12", "i // 4"),
    ("(i + 100) % 8", "", "(i + 4) % 8"),
    ("(i + 7) % 8", "", "(i + 7) % 8"),
    ("i*4 % 12", "", "i % 3 * 4"),
    ("i*4 % 10", "", "i * 4 % 10"),
    ("i*4 // 12", "", "i // 3"),
    ("i*4 // 10", "", "i * 4 // 10"),
    ("div(i*8 + j, 8)", "i < 9, j < 8", "i"),
    ("div(i*8, 8)", "", "i"),
    ("div(i*8 + 4, 8)", "", "T.Div(i * 8 + 4, 8)"),
    ("mod(i*8 + 16, 8)", "", "0"),
    ("mod(i*8 + 4, 8)", "", "T.truncmod(i * 8 + 4, 8)"),
    ("mod(i, 8)", "i < 100", "i % 8"),
    ("i*2 + j*2 - i", "", "j * 2 + i"),
    ("(i + j) * 3 - j*3", "", "i * 3"),
    ("i*8 + j < 16", "j < 8", "i < 2"),
    ("i*8 + j < 17", "j < 8", "i * 8 + j < 17"),
    ("i*8 + j*4 < k*4 + 12", "", "i * 2 + j < k + 3"),
    ("i*8 + j*4 < k*3 + 12", "", "i * 8 + j * 4 < k * 3 + 12"),
    ("i*8 + j >= 16", "j < 8", "2 <= i"),
    ("5 < 3", "", "T.bool(False)"),
    ("i - i < 1", "", "T.bool(True)"),
]
# fmt: on


@pytest.mark.parametrize(("text", "facts", "expected"), FORMS)
def test_forms_and_near_misses(text, facts, expected):
    expr = expression(text, NAMES)
    result = analyzer_of(facts, NAMES).canonical_simplify(expr)
    assert str(result) == expected


CASTS = [
    # a cast to a wider type goes into a sum, if the sum does not leave the narrow one
    ("int64(i*4 + j)", "i < 8, j < 4", 'T.Cast("int64", i) * T.int64(4) + T.Cast("int64", j)'),
    ("int64(i*4 + j)", "", 'T.Cast("int64", i * 4 + j)'),
    ("int64(i // 4)", "", 'T.Cast("int64", i // 4)'),
    ("int32(i + j)", "", "i + j"),
    ("int16(i*4 + j)", "i < 8, j < 4", 'T.Cast("int16", i * 4 + j)'),
    ("int32(b + b)", "b < 9", 'T.Cast("int32", b + b)'),
    ("int64(i*8 + j) // 8", "i < 8, j < 8", 'T.Cast("int64", i)'),
    ("w*4 + int64(i) - w*4", "", 'T.Cast("int64", i)'),
]


@pytest.mark.parametrize(("text", "facts", "expected"), CASTS)
def test_casts(text, facts, expected):
    result = analyzer_of(facts, NAMES).canonical_simplify(expression(text, NAMES))
    assert str(result) == expected


@pytest.mark.parametrize("text", ["b + b - b", "u*4 // 4", "(u + 255) % 5", "b*2 < b", "u - u % 4"])
def test_what_wraps_is_no_linear_sum(text):
    """``b + b`` of an int8 may be anything: its terms are no digits."""
    expr = expression(text, NAMES)
    assert Analyzer().canonical_simplify(expr) is expr


def test_the_forms_of_expressions():
    analyzer = Analyzer()
    assert analyzer.canonical_form(I) is I
    assert analyzer.canonical_form(number(3)).value == 3
    assert analyzer.canonical_form(I * 3) == Split(I, scale=3)
    assert analyzer.canonical_form(I % 8 // 2) == Split(I, 2, 8)
    form = analyzer.canonical_form(I * 3 + J + 5)
    assert isinstance(form, Sum)
    assert (form.splits, form.base) == ((Split(I, scale=3), Split(J)), 5)
    assert analyzer.canonical_form(I < J) is not None


def test_any_form_is_a_sum():
    assert as_sum(number(7)) == Sum(number(7).dtype, (), 7)
    assert as_sum(I) == Sum(I.dtype, (Split(I),))
    assert as_sum(Split(I, 2)) == Sum(I.dtype, (Split(I, 2),))
    assert as_sum(Split(I, scale=0)) == Sum(I.dtype)
    form = Sum(I.dtype, (Split(J),), 3)
    assert as_sum(form) is form


def test_what_is_canonical_is_the_same_object():
    for text in ("i * 4 + j", "j // 4 + i", "i % 4", "i < j + 3", "min(i, j)", "p and i < 3"):
        expr = expression(text, NAMES)
        assert Analyzer().canonical_simplify(expr) is expr


def test_a_constant_of_a_comparison_that_leaves_the_type_stays_where_it_is():
    least = IntImm("int32", -(2**31))
    expr = nodes.LT(I + least, J)
    result = Analyzer().canonical_simplify(expr)
    assert value_of(result, {"i": 0, "j": -5}) == value_of(expr, {"i": 0, "j": -5})
    assert value_of(result, {"i": 5, "j": -(2**31)}) == value_of(expr, {"i": 5, "j": -(2**31)})


def test_a_long_sum_of_data_stays_one_term():
    """Else each step of ``x = x + f(x)`` would hold the terms of all steps before it."""
    buffer = decl_buffer((64,), "int32", "A")
    total = buffer[0]
    for place in range(1, 12):
        total = total + buffer[place]
    form = Analyzer().canonical_form(total)
    assert len(as_sum(form).splits) < 12
    few = buffer[0] + buffer[1] + buffer[0]
    assert len(as_sum(Analyzer().canonical_form(few)).splits) == 2


def test_arithmetic_on_data_that_may_wrap_keeps_its_divisions():
    data = decl_buffer((4,), "int32", "A")[0]
    for expr in (op.floordiv(data * 4, 4), op.floormod(data * 6, 3), op.truncdiv(data * 4, 4)):
        assert type(Analyzer().canonical_simplify(expr)) is type(expr)
    assert str(Analyzer().canonical_simplify(op.floordiv(data % 8 * 4, 4))) == "A[0] % 8"


def test_operands_are_canonical_inside_of_what_is_not_linear():
    expr = op.call_extern("int32", "f", J + I * 4 + I, op.max(J + I - J, 3))
    result = Analyzer().canonical_simplify(expr)
    assert [str(argument) for argument in result.args[1:]] == ["i * 5 + j", "T.max(i, 3)"]


@pytest.mark.parametrize("kind", ARITHMETIC, ids=lambda kind: kind.__name__)
def test_constants_are_computed(kind):
    for a, b in itertools.product((-7, 0, 5), (-3, 1, 4)):
        result = Analyzer().canonical_simplify(kind(number(a), number(b)))
        assert result.value == ARITHMETIC[kind](a, b)


@pytest.mark.parametrize("scales", [(12, 4, 1), (6, 4, 2), (-12, 4, 1), (24, 6, 3), (10, 4, 1)])
@pytest.mark.parametrize("by", [2, 4, 8, 12])
def test_quotients_and_remainders_of_several_terms_have_the_same_values(scales, by):
    analyzer = simplifier()
    k = NAMES["k"]
    analyzer.update(k, ConstIntBound(0, 3))
    terms = [nodes.Mul(var, number(scale)) for var, scale in zip((I, J, k), scales, strict=True)]
    total = nodes.Add(nodes.Add(nodes.Add(terms[0], terms[1]), terms[2]), number(1))
    for kind in (nodes.FloorDiv, nodes.FloorMod):
        expr = kind(total, number(by))
        simpler = analyzer.canonical_simplify(expr)
        for i, j in POINTS:
            for last in range(4):
                values = {"i": i, "j": j, "k": last}
                assert value_of(simpler, values) == value_of(expr, values)
