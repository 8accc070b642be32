"""Expressions of Python in a script: what they mean, and where scripts and texts differ."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.ir.structural import structural_equal
from weft.script.parser.evaluator import Evaluator
from weft.script.parser.scope import PLAIN_BUILTINS, Scopes
from weft.script.parser.text_evaluator import TextEvaluator
from weft.support.diagnostics import Source
from weft.support.errors import DiagnosticError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer

PLAIN = {"a": 3, "b": -7, "flag": True, "word": "wéft", "pair": (1, 2), "table": {"k": [4, 5]}}


def plain(text, names=PLAIN):
    """The value of an expression in a decorated script."""
    return Evaluator(Source.from_text("<str>", text), Scopes(names)).evaluate(expression(text))


def text(text, names=PLAIN):
    """The value of an expression in a text."""
    source = Source.from_text("<str>", text)
    return TextEvaluator(source, Scopes(names), {}).evaluate(expression(text))


def expression(text):
    return ast.parse(text, mode="eval").body


# fmt: off
AS_PYTHON = [
    # numbers, in every operator
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "b // a", "b % a", "a ** 2", "2 ** -1",
    "a << 2", "b >> 1", "a & b", "a | b", "a ^ b", "-a", "+b", "~a", "not a", "--a",
    "a + b * a - b", "(a + b) * a", "-a ** 2", "2 ** 3 ** 2", "1e400", "0x_ff", "1_000", "0b101",
    # comparisons stand in chains, and stop at the first that fails
    "a < b", "b < a < 10", "b < a > 10", "1 < 2 < 3 < 2", "a == 3 != b", "a is a", "a is not b",
    "None is None", "1 in pair", "3 not in pair", "'w' in word", "'k' in table", "1 < (2 in pair)",
    "3 > 2 or 1 / 0", "1 > 2 and 1 / 0", "0 or [] or ''", "1 and 'x' and (2,)", "1 < 0 < 1 / 1",
    # choices evaluate one side
    "1 if flag else 1 / 0", "1 / 0 if not flag else 2", "(1 if a else 2, 3)",
    # containers
    "()", "(1,)", "[1, 2][1]", "{1, 2} == {2, 1}", "{'x': 1, **table}", "[*pair, 3]", "(*pair,)",
    "{*pair}", "[0, 1, 2, 3][1:3]", "[0, 1, 2, 3][::-1]", "word[1:]", "word[-1]", "pair[0]",
    "[0, 1, 2, 3][:-1:2]", "table['k'][0]",
    # comprehensions nest, filter, unpack, and do not leak their names
    "[x * x for x in range(4)]", "[x for x in range(9) if x % 2 if x > 3]",
    "[(x, y) for x in range(3) for y in range(x)]", "[y for x in [[1], [2, 3]] for y in x]",
    "[k + v for k, v in {'a': 'b', 'c': 'd'}.items()]", "{x % 3 for x in range(9)}",
    "{x: x * x for x in range(4) if x != 2}", "{k: v for k, v in zip('ab', (1, 2))}",
    "sum(x for x in range(5))", "[a for a in range(2)] + [a]",
    "[[y for y in range(x)] for x in pair]",
    "[first for first, *rest in [(1, 2, 3)]]", "[rest for first, *rest in [(1, 2, 3), (4,)]]",
    "[middle for _, *middle, _ in ['abcd']]",
    # functions
    "(lambda: 4)()", "(lambda x, y: x - y)(5, 2)", "(lambda *x: x)(1, 2)",
    "(lambda x, *y: y)(1, 2, 3)",
    "(lambda x=4: x)()", "(lambda x, y=a: x + y)(1)", "(lambda x, y=a: x + y)(1, 2)",
    "(lambda x, y: x - y)(y=1, x=5)", "(lambda *x, k=2: (x, k))(1)", "(lambda *, k: k)(k=7)",
    "(lambda **w: w)(p=1, q=2)", "(lambda x, /, y: (x, y))(1, y=2)",
    "[g() for g in [(lambda v=v: v) for v in range(3)]]", "(lambda a=a + 1: a)()",
    "(lambda x: (lambda y: x + y))(1)(2)", "list(map(lambda x: x + a, [1, 2]))",
    "sorted([3, 1, 2], key=lambda x: -x)", "max(pair)", "min(4, 2)", "abs(b)", "len(word)",
    "divmod(7, 2)", "pow(2, 5)", "pow(2, 5, 7)", "round(2.567, 1)", "int('7')", "float('1.5')",
    "str(3)", "bool([])", "tuple([1])", "list((1, 2))", "dict(k=1)", "set([1])",
    "isinstance(a, int)",
    "list(reversed([1, 2]))", "list(enumerate('ab'))", "list(filter(lambda x: x > 1, [1, 2]))",
    "sum([1, 2], 3)", "dict(**{'x': 1})", "max(*pair, 5)", "slice(1, 2)", "list(range(3, 0, -1))",
    # texts
    "f'{a}'", "f'{a:05d}'", "f'{word!r}'", "f'{word!a}'", "f'{word!s:>8}'", "f'{1.5:.3f}|{a}{b}'",
    "f'{a:{1 + 2}d}'", "f'{{}}'", "'x' 'y'", "word.upper()", "'a' < 'b'", "'ab' * 2",
    "word.startswith('w')", "(1, 2).index(2)", "[1, 1].count(1)", "{'x': 1}.get('y', 5)",
    "sorted({'x': 1}.keys())", "b'ab'[0]",
]
# fmt: on


@pytest.mark.parametrize("evaluate", [plain, text])
@pytest.mark.parametrize("source", AS_PYTHON)
def test_a_value_of_python_is_what_python_says(evaluate, source):
    wanted = eval(source, dict(PLAIN))
    assert evaluate(source) == wanted
    assert type(evaluate(source)) is type(wanted)


INTEGER = st.integers(-20, 20).map(str)
JOIN = st.sampled_from("+ - * // % & | ^ < <= == != and or".split())


def larger(inner):
    """Expressions of two smaller ones, in parentheses or without, in any form."""
    binary = st.builds("{} {} {}".format, inner, JOIN, inner)
    enclosed = inner.map("({})".format)
    unary = st.builds("{}({})".format, st.sampled_from(["-", "~", "not ", "+"]), inner)
    choice = st.builds("({} if {} else {})".format, inner, inner, inner)
    listed = st.builds("[{}, {}][{} % 2]".format, inner, inner, inner)
    applied = st.builds("(lambda a: {})({})".format, inner, inner)
    summed = st.builds("sum([{} for a in range(3)])".format, inner)
    return st.one_of(binary, enclosed, unary, choice, listed, applied, summed)


def outcome(evaluate, source):
    """The value with its type, or the kind of the error."""
    try:
        value = evaluate(source)
    except SyntaxError:
        return None
    except (ArithmeticError, TypeError, ValueError) as error:
        cause = error.__cause__ if isinstance(error, DiagnosticError) else error
        return type(cause)
    return type(value), value


@settings(max_examples=60)
@given(st.recursive(INTEGER | st.sampled_from(["a", "b", "flag"]), larger, max_leaves=10))
def test_a_random_expression_is_what_python_says(source):
    wanted = outcome(lambda given: eval(given, dict(PLAIN)), source)
    if wanted is not None:
        assert outcome(plain, source) == wanted
        assert outcome(text, source) == wanted


X, Y = nodes.Var("x", "int32"), nodes.Var("y", "int32")
U, P, Q = nodes.Var("u", "uint8"), nodes.Var("p", "bool"), nodes.Var("q", "bool")
A = decl_buffer((16,), "float32", "A")
IR = {"x": X, "y": Y, "u": U, "p": P, "q": Q, "A": A, "f": op.exp}

VECTOR = BufferLoad(A, [nodes.Ramp(op.const(0, "int32"), op.const(1, "int32"), 4)])

BUILDS = [
    ("x + 1", op.add(X, 1)),
    ("1 + x", op.add(1, X)),
    ("x // 2 % 3", op.floormod(op.floordiv(X, 2), 3)),
    ("x << 1 | y", op.bitwise_or(op.shift_left(X, 1), Y)),
    ("-x", op.multiply(X, -1)),
    ("1 <= x", op.less_equal(1, X)),
    ("x < y", op.less(X, Y)),
    ("x < y < 3", op.logical_and(op.less(X, Y), op.less(Y, 3))),
    ("1 < x < y < 9", op.logical_and(
        op.logical_and(op.less(1, X), op.less(X, Y)), op.less(Y, 9))),
    ("p and q", nodes.And(P, Q)),
    ("p or q and p", nodes.Or(P, nodes.And(Q, P))),
    ("not p", nodes.Not(P)),
    ("not p and q", nodes.And(nodes.Not(P), Q)),
    ("x == y", op.equal(X, Y)),
    ("x != 3", op.not_equal(X, 3)),
    ("x if p else y", op.if_then_else(P, X, Y)),
    ("1 if p else x", op.if_then_else(P, 1, X)),
    ("True and p", nodes.And(op.const(True, "bool"), P)),
    ("False or p", nodes.Or(op.const(False, "bool"), P)),
    ("A[x]", BufferLoad(A, [X])),
    ("-A[0:4]", op.multiply(VECTOR, op.const(-1.0, "float32x4"))),
    ("u + 1", op.add(U, op.const(1, "uint8"))),
    ("1 + u", op.add(op.const(1, "uint8"), U)),
    ("u < 255", op.less(U, op.const(255, "uint8"))),
    ("[x, y][1]", Y),
    ("sum([x, y])", op.add(op.add(0, X), Y)),
    ("(lambda v: v * v)(x)", op.multiply(X, X)),
    ("f(A[0])", op.exp(BufferLoad(A, [0]))),
]  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), BUILDS, ids=[row[0] for row in BUILDS])
def test_an_operand_of_the_program_builds_the_program(source, wanted):
    value = plain(source, IR)
    assert structural_equal(value, wanted, map_free_vars=False), f"{value} is not {wanted}"


def test_a_number_that_no_unsigned_type_holds_promotes_as_everywhere():
    value = plain("u + 256", IR)
    assert value.dtype != "uint8"


@pytest.mark.parametrize("source", ["x and (1 / 0)", "p or (1 / 0)"])
def test_what_is_known_at_run_time_decides_nothing_at_parse_time(source):
    with pytest.raises(DiagnosticError, match="division by zero"):
        plain(source, IR)


def test_the_sides_of_logic_must_be_truth_values():
    with pytest.raises(DiagnosticError, match="And: expected bool operands, got int32 and bool"):
        plain("x and p", IR)


WRONG = [
    ("z", "z", "undefined name 'z'"),
    ("wort", "wort", "undefined name 'wort'; did you mean 'word'?"),
    ("pair[2]", "pair[2]", "tuple index out of range"),
    ("table['q']", "table['q']", "no entry 'q'"),
    ("a + word", "a + word", "unsupported operand type(s) for +: 'int' and 'str'"),
    ("1 + (a + 1 / 0)", "1 / 0", "division by zero"),
    ("[x / 0 for x in pair]", "x / 0", "division by zero"),
    ("(lambda x: x)()", "(lambda x: x)()", "missing a required argument: 'x'"),
    ("(lambda x, *y: x)()", "(lambda x, *y: x)()", "missing a required argument: 'x'"),
    ("(lambda x: x)(1, 2)", "(lambda x: x)(1, 2)", "too many positional arguments"),
    ("(lambda x: x)(y=1)", "(lambda x: x)(y=1)", "missing a required argument: 'x'"),
    ("(lambda *, x: x)(1)", "(lambda *, x: x)(1)", "too many positional arguments"),
    ("[x for x, y in [(1,)]]", "x, y", "expected 2 values to unpack, got 1"),
    ("[x for x, y in [1]]", "x, y", "expected 2 values to unpack, got one int"),
    ("[x for x, *y, z in [(1,)]]", "x, *y, z", "expected 3 values to unpack, got 1"),
    ("a.__class__", "a.__class__", "attribute '__class__' cannot be used in a script"),
    ("(a := 3)", "a := 3", ":= is not part of TVMScript"),
    ("int('x')", "int('x')", "invalid literal for int() with base 10: 'x'"),
    ("a(1)", "a(1)", "'int' object is not callable"),
    ("max()", "max()", "max expected at least 1 argument, got 0"),
]


@pytest.mark.parametrize(("source", "place", "message"), WRONG, ids=[r[0] for r in WRONG])
def test_a_wrong_expression_is_underlined(source, place, message):
    with pytest.raises(DiagnosticError) as caught:
        plain(source)
    *rest, shown, carets = str(caught.value).splitlines()
    assert rest[0] == f"error: {message}"
    assert shown[carets.index("^") : carets.rindex("^") + 1] == place


def test_a_comprehension_keeps_the_names_around_it():
    scopes = Scopes({"x": 5})
    evaluator = Evaluator(Source.from_text("<str>", ""), scopes)
    assert evaluator.evaluate(expression("[x for x in range(3)] + [x]")) == [0, 1, 2, 5]
    assert len(scopes.frames) == 1


def test_a_lambda_sees_the_names_of_the_place_where_it_is_written():
    scopes = Scopes({})
    evaluator = Evaluator(Source.from_text("<str>", ""), scopes)
    scopes.define("n", 2)
    with scopes.nested() as frame:
        frame["n"] = 7
        inner = evaluator.evaluate(expression("lambda: n"))
    assert inner() == 7
    assert evaluator.evaluate(expression("(lambda n: (lambda: n))(9)"))() == 9
    assert scopes.find("n") == (True, 2)


def test_a_lambda_that_calls_itself_ends_and_leaves_the_scopes():
    scopes = Scopes({})
    evaluator = Evaluator(Source.from_text("<str>", ""), scopes)
    with pytest.raises(DiagnosticError, match="a lambda calls itself without end"):
        evaluator.evaluate(expression("(lambda f: f(f))(lambda f: f(f))"))
    assert evaluator.depth == 0
    assert len(scopes.frames) == 1


def test_the_functions_of_python_that_a_script_has_touch_nothing_outside():
    assert not {
        "open",
        "eval",
        "exec",
        "compile",
        "getattr",
        "setattr",
        "input",
        "vars",
        "globals",
        "locals",
        "__import__",
        "delattr",
        "breakpoint",
    } & set(PLAIN_BUILTINS)


def test_names_of_the_script_hide_those_of_python():
    assert plain("max", {"max": 3}) == 3
    with pytest.raises(DiagnosticError, match="'int' object is not callable"):
        plain("max(1, 2)", {"max": 3})
