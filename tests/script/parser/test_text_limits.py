"""The limits of a text, each at its edge: what is just allowed, and what is just too much."""

from __future__ import annotations

import ast

import pytest

from tests.lib.script_errors import error_of
from weft import relax
from weft.script import from_source
from weft.script.parser import text_limits
from weft.script.parser.text_limits import BITS, WIDTH, Budget, call_builtin
from weft.support.errors import IRTypeError, IRValueError

PROGRAM = '\n@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n    A[0] = 1\n'

# fmt: off
ALLOWED = [
    f"2 ** {BITS // 2}", f"2 ** {BITS // 2} * 2 ** {BITS // 2 - 2}", f"1 << {BITS - 1}",
    "0 << 10 ** 9",
    "1 ** 10 ** 9", "(-1) ** 10 ** 9", "0 ** 10 ** 9", "2 ** -10 ** 2", "10 ** 9 >> 10 ** 9",
    f"f'{{1:{WIDTH}}}'", f"f'{{1.5:.{WIDTH}f}}'", "f'{1:0999d}'", "'ab' * 500", "500 * (1,)",
    "'x' * -10 ** 12", "[0] * 0", "range(10 ** 12)", "1 in range(10 ** 12)", "range(10 ** 12)[7]",
    "5 % 3", "sum([1, 2], 10)", "pow(2, 100, 7)", "str(10 ** 1000)[0]",
    "list(range(1000))", "[0 for i in range(1000)]", "{i: i for i in range(100)}",
]
REFUSED = [
    (f"2 ** {BITS + 1}", f"an integer of a script has at most {BITS} bits"),
    (f"3 ** {BITS}", "an integer of a script has at most"),
    (f"1 << {BITS}", "an integer of a script has at most"),
    (f"2 ** {BITS // 2} * 2 ** {BITS // 2}", "an integer of a script has at most"),
    ("(-2) ** 10 ** 6", "an integer of a script has at most"),
    (f"f'{{1:{WIDTH + 1}}}'", f"is wider than {WIDTH}"),
    (f"f'{{1.5:.{WIDTH + 1}f}}'", f"is wider than {WIDTH}"),
    ("f'{1:00000001}'", f"is wider than {WIDTH}"),
    ("f'{1:1.1001}'", f"is wider than {WIDTH}"),
    ("'%d' % 3", "a text has no % of strings; write an f-string"),
    ("b'%d' % 3", "a text has no % of strings; write an f-string"),
    ("'ab' * 10 ** 6", "a str is too large for a script"),
    ("10 ** 7 * [1]", "a list is too large for a script"),
    ("str(b'x', 'utf-8')", "str: expected one value"),
    ("str(object=3)", "str: expected one value"),
    ("len(range(10 ** 12))", "a list is too large for a script"),
    ("[*range(10 ** 12)]", "a range is too large for a script"),
]
# fmt: on


@pytest.mark.parametrize("source", ALLOWED)
def test_what_is_just_allowed(source):
    assert from_source(f"x = {source}{PROGRAM}").attrs["global_symbol"] == "f"


@pytest.mark.parametrize(("source", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_just_too_much(source, message):
    text, place = error_of(f"x = {source}{PROGRAM}")
    assert message in text
    assert place in source


def test_the_limit_of_a_sequence_is_exact():
    budget = Budget(0)
    assert budget.check([0] * (budget.items - 1))
    with pytest.raises(IRValueError, match=f"a list is too large .* at most {budget.items} items"):
        budget.check([0] * budget.items)


def test_a_value_is_as_large_as_all_that_it_holds():
    budget = Budget(0)
    before = budget.left
    budget.check({"ab": [1, 2, (3,)], "c": "xyz"})
    # the dict 1 + 2, its keys 1 + 2 and 1 + 1, the list 1 + 3, its tuple 1 + 1, the text 1 + 3
    assert before - budget.left == 3 + 3 + 2 + 4 + 2 + 4


def test_what_holds_itself_through_sharing_is_counted_at_each_place():
    budget = Budget(0)
    shared = [1] * 1000
    for _ in range(3):
        shared = [shared] * 30
    with pytest.raises(IRValueError, match="too large for a script"):
        budget.check(shared)


def test_values_of_the_language_cost_nothing():
    budget = Budget(0)
    before = budget.left
    for value in (3, 2.5, None, relax.Var("x", relax.ObjectStructInfo())):
        assert budget.check(value) is value
    assert budget.left == before


def test_a_long_text_may_do_more():
    assert Budget(10_000_000).left > Budget(0).left
    assert Budget(10_000_000).items == 10_000_000
    assert Budget(10_000_000).nodes > Budget(0).nodes


def test_work_is_paid_until_none_is_left():
    budget = Budget(0)
    budget.spend(budget.left)
    with pytest.raises(IRValueError, match="too much work at parse time"):
        budget.spend(1)


def test_an_expression_of_the_graph_is_as_large_as_its_tree():
    budget = Budget(0)
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    value = x
    for _ in range(12):
        value = relax.op.add(value, value)
    budget.expression(value)
    for _ in range(4):
        value = relax.op.add(value, value)
    with pytest.raises(IRValueError, match=f"at most {budget.nodes} nodes"):
        budget.expression(value)


def apply(function, *args, **kwargs):
    """What a text gets from a function of Python."""
    budget = Budget(0)

    def operation(kind, lhs, rhs):
        budget.binary(kind, lhs, rhs)
        return {ast.Add: lambda: lhs + rhs, ast.Pow: lambda: lhs**rhs}[type(kind)]()

    return call_builtin(function, args, kwargs, operation)


@pytest.mark.parametrize("function", [map, filter, zip, enumerate, reversed])
def test_an_iterator_is_a_list_of_known_size(function):
    args = {map: (abs, [1, 2]), filter: (bool, [1, 0]), zip: ([1], [2])}.get(function, ([1, 2],))
    assert apply(function, *args) == list(function(*args))


def test_a_sum_adds_as_the_operator_does():
    assert apply(sum, [1, 2, 3]) == 6
    assert apply(sum, [[1], [2]], []) == [1, 2]
    assert apply(sum, [1, 2], start=4) == 7
    assert apply(pow, 2, 10) == 1024
    assert apply(pow, 2, 10, 7) == 2
    with pytest.raises(IRValueError, match="at most 4096 bits"):
        apply(pow, 2, 5000)
    with pytest.raises(IRTypeError, match="str: expected one value"):
        apply(str, b"x", "ascii")


def test_a_range_is_as_long_as_it_says_though_python_could_not_count_it():
    assert text_limits._length(range(10**30)) == 10**30 + 1
    assert text_limits._length(range(5, 2)) == 1
    assert text_limits._length(range(0, 10, 3)) == 5


def test_a_text_of_the_printer_never_reaches_a_limit():
    lines = "".join(f"    A[0] = A[0] + {number}\n" for number in range(400))
    func = from_source('@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n' + lines)
    assert len(from_source(func.script()).body.seq) == 400
