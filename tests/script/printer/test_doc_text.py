"""Random docs: Python reads the text of a doc as the tree that the doc is."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    ClassDoc,
    DictDoc,
    Doc,
    DocStringDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    IndexDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
    WhileDoc,
)
from weft.script.printer.doc_printer import format_float, quote, to_python_script
from weft.support.errors import IRTypeError

K = OperationKind
UNARY = {K.USub: ast.USub, K.Invert: ast.Invert, K.Not: ast.Not}
BINARY = {
    K.Add: ast.Add, K.Sub: ast.Sub, K.Mult: ast.Mult, K.Div: ast.Div, K.FloorDiv: ast.FloorDiv,
    K.Mod: ast.Mod, K.Pow: ast.Pow, K.LShift: ast.LShift, K.RShift: ast.RShift,
    K.BitAnd: ast.BitAnd, K.BitOr: ast.BitOr, K.BitXor: ast.BitXor,
}  # fmt: skip
COMPARE = {
    K.Lt: ast.Lt, K.LtE: ast.LtE, K.Eq: ast.Eq, K.NotEq: ast.NotEq, K.Gt: ast.Gt, K.GtE: ast.GtE,
}  # fmt: skip
LOGIC = {K.And: ast.And, K.Or: ast.Or}


def tree(doc):
    """What Python's parser should make of the text of an expression."""
    if isinstance(doc, IdDoc):
        return ("name", doc.name)
    if isinstance(doc, LiteralDoc):
        return ("literal", repr(doc.value))
    if isinstance(doc, AttrAccessDoc):
        return ("attribute", tree(doc.value), doc.name)
    if isinstance(doc, IndexDoc):
        return ("index", tree(doc.value), tuple(tree(item) for item in doc.indices))
    if isinstance(doc, SliceDoc):
        return ("slice", *[part and tree(part) for part in (doc.start, doc.stop, doc.step)])
    if isinstance(doc, CallDoc):
        words = zip(doc.kwargs_keys, doc.kwargs_values, strict=True)
        return ("call", tree(doc.callee), tuple(map(tree, doc.args)),
                tuple((key, tree(value)) for key, value in words))  # fmt: skip
    if isinstance(doc, LambdaDoc):
        return ("lambda", tuple(item.name for item in doc.args), tree(doc.body))
    if isinstance(doc, ListDoc | TupleDoc):
        return (type(doc).__name__, tuple(map(tree, doc.elements)))
    if isinstance(doc, DictDoc):
        return ("dict", tuple(map(tree, doc.keys)), tuple(map(tree, doc.values)))
    if doc.kind is K.USub and isinstance(doc.operands[0], LiteralDoc):
        value = doc.operands[0].value
        if type(value) in (int, float):
            return ("literal", repr(-value))  # the same text as that of the negative number
    return (doc.kind.name, *map(tree, doc.operands))


def read(node):
    """The same for a node of Python's own tree."""
    if isinstance(node, ast.Name):
        return ("name", node.id)
    if isinstance(node, ast.Constant):
        return ("literal", repr(node.value))
    if isinstance(node, ast.Attribute):
        return ("attribute", read(node.value), node.attr)
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ("index", read(node.value), tuple(map(read, items)))
    if isinstance(node, ast.Slice):
        return ("slice", *[part and read(part) for part in (node.lower, node.upper, node.step)])
    if isinstance(node, ast.Call):
        words = tuple((word.arg, read(word.value)) for word in node.keywords)
        return ("call", read(node.func), tuple(map(read, node.args)), words)
    if isinstance(node, ast.Lambda):
        return ("lambda", tuple(item.arg for item in node.args.args), read(node.body))
    if isinstance(node, ast.List | ast.Tuple):
        return (f"{type(node).__name__}Doc", tuple(map(read, node.elts)))
    if isinstance(node, ast.Dict):
        return ("dict", tuple(map(read, node.keys)), tuple(map(read, node.values)))
    return read_operation(node)


def kind_of(table, operator):
    return next(kind.name for kind, item in table.items() if isinstance(operator, item))


def read_operation(node):
    if isinstance(node, ast.UnaryOp):
        inner = node.operand
        if isinstance(node.op, ast.USub) and isinstance(inner, ast.Constant):
            if type(inner.value) in (int, float):
                return ("literal", repr(-inner.value))
        return (kind_of(UNARY, node.op), read(inner))
    if isinstance(node, ast.BinOp):
        return (kind_of(BINARY, node.op), read(node.left), read(node.right))
    if isinstance(node, ast.Compare):
        assert len(node.ops) == 1, "a chain of comparisons means something else"
        return (kind_of(COMPARE, node.ops[0]), read(node.left), read(node.comparators[0]))
    if isinstance(node, ast.BoolOp):
        name, (first, *rest) = kind_of(LOGIC, node.op), map(read, node.values)
        for item in rest:
            first = (name, first, item)
        return first
    assert isinstance(node, ast.IfExp)
    return (K.IfThenElse.name, read(node.test), read(node.body), read(node.orelse))


NAMES = st.sampled_from("abcxyz").map(IdDoc)
LITERALS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**20),
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8),
).map(LiteralDoc)  # fmt: skip


def larger(inner):
    some = st.lists(inner, max_size=3)
    slices = st.builds(SliceDoc, st.none() | inner, st.none() | inner, st.none() | inner)
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(AttrAccessDoc, inner, st.sampled_from(["dtype", "shape"])),
        st.builds(IndexDoc, inner, st.lists(inner | slices, min_size=2, max_size=3)),
        st.builds(CallDoc, inner, some),
        st.builds(lambda f, a, v: CallDoc(f, a, ["key"], [v]), inner, some, inner),
        st.builds(LambdaDoc, st.lists(NAMES, min_size=1, max_size=2, unique_by=lambda d: d.name),
                  inner),
        st.builds(ListDoc, some), st.builds(TupleDoc, some),
        st.builds(lambda keys: DictDoc(keys, keys[::-1]), some),
        st.builds(lambda kind, a: OperationDoc(kind, [a]), st.sampled_from([*UNARY]), inner),
        st.builds(lambda kind, ab: OperationDoc(kind, list(ab)),
                  st.sampled_from([*BINARY, *COMPARE, *LOGIC]), pair),
        st.builds(lambda c, ab: OperationDoc(K.IfThenElse, [c, *ab]), inner, pair),
    )  # fmt: skip


EXPRESSIONS = st.recursive(NAMES | LITERALS, larger, max_leaves=12)


@settings(max_examples=100)
@given(EXPRESSIONS)
def test_python_reads_an_expression_as_what_it_is(doc):
    text = to_python_script(doc)
    assert read(ast.parse(f"({text})", mode="eval").body) == tree(doc), text


TIGHT = [
    (OperationDoc(K.Pow, [LiteralDoc(-1), IdDoc("x")]), "(-1) ** x"),
    (OperationDoc(K.Pow, [IdDoc("x"), LiteralDoc(-1)]), "x ** -1"),
    (OperationDoc(K.Pow, [LiteralDoc(-0.5), IdDoc("x")]), "(-0.5) ** x"),
    (OperationDoc(K.Sub, [IdDoc("x"), LiteralDoc(-1)]), "x - -1"),
    (LiteralDoc(-1).attr("real"), "(-1).real"),
    (LiteralDoc(1).attr("real"), "(1).real"),
    (LiteralDoc(1.5).attr("real"), "1.5.real"),
    (LiteralDoc("a").attr("upper").call(), '"a".upper()'),
    (OperationDoc(K.USub, [OperationDoc(K.USub, [IdDoc("x")])]), "--x"),
    (OperationDoc(K.Not, [OperationDoc(K.Lt, [IdDoc("x"), IdDoc("y")])]), "not x < y"),
    (OperationDoc(K.Pow, [OperationDoc(K.USub, [IdDoc("x")]), LiteralDoc(2)]), "(-x) ** 2"),
    (OperationDoc(K.USub, [OperationDoc(K.Pow, [IdDoc("x"), LiteralDoc(2)])]), "-x ** 2"),
    (OperationDoc(K.Add, [LambdaDoc([IdDoc("x")], IdDoc("x")), IdDoc("y")]), "(lambda x: x) + y"),
    (LambdaDoc([IdDoc("x")], LambdaDoc([IdDoc("y")], IdDoc("x"))), "lambda x: lambda y: x"),
    (LambdaDoc([IdDoc("x")], TupleDoc([IdDoc("x")])), "lambda x: (x,)"),
    (IdDoc("x")[LiteralDoc(0)][LiteralDoc(1)], "x[0][1]"),
    (OperationDoc(K.Eq, [OperationDoc(K.Eq, [IdDoc("x"), IdDoc("y")]), IdDoc("z")]),
     "(x == y) == z"),
]  # fmt: skip


@pytest.mark.parametrize(("doc", "text"), TIGHT, ids=[text for _, text in TIGHT])
def test_parentheses_stand_where_python_needs_them(doc, text):
    assert to_python_script(doc) == text
    assert read(ast.parse(text, mode="eval").body) == tree(doc)


@settings(max_examples=80)
@given(st.text())
def test_a_text_comes_back_of_its_literal(value):
    assert ast.literal_eval(quote(value)) == value
    assert "\n" not in quote(value)


@settings(max_examples=80)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back_of_its_digits(value):
    assert repr(float(format_float(value))) == repr(value)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_float_without_digits_is_a_text(value):
    assert repr(float(ast.literal_eval(format_float(value)))) == repr(value)


STATEMENTS = [
    (AssignDoc(TupleDoc([IdDoc("x")]), IdDoc("a")), "x, = a"),
    (AssignDoc(TupleDoc([]), IdDoc("a")), "() = a"),
    (AssignDoc(IdDoc("x"), TupleDoc([IdDoc("a")])), "x = (a,)"),
    (AssignDoc(IdDoc("x"), TupleDoc([])), "x = ()"),
    (AssignDoc(IdDoc("x").attr("y"), IdDoc("a")), "x.y = a"),
    (AssignDoc(IdDoc("x")[IdDoc("i")], IdDoc("a")), "x[i] = a"),
    (ForDoc(TupleDoc([IdDoc("x")]), IdDoc("a"), []), "for x, in a:\n    pass"),
    (ReturnDoc(TupleDoc([IdDoc("a"), IdDoc("b")])), "return (a, b)"),
    (AssertDoc(IdDoc("a")), "assert a"),
    (ScopeDoc(TupleDoc([IdDoc("x"), IdDoc("y")]), IdDoc("a"), []), "with a as (x, y):\n    pass"),
    (WhileDoc(IdDoc("a"), [IfDoc(IdDoc("b"), [ExprStmtDoc(IdDoc("c"))], [])]),
     "while a:\n    if b:\n        c"),
    (IfDoc(IdDoc("a"), [ExprStmtDoc(IdDoc("b"))], [IfDoc(IdDoc("c"), [ExprStmtDoc(IdDoc("d"))])]),
     "if a:\n    b\nelse:\n    if c:\n        d"),
    (DocStringDoc("two\nlines"), '"""\ntwo\nlines\n"""'),
    (StmtBlockDoc([]), ""),
]  # fmt: skip


@pytest.mark.parametrize(("doc", "text"), STATEMENTS, ids=[text for _, text in STATEMENTS])
def test_a_statement_is_python(doc, text):
    assert to_python_script(doc) == text
    ast.parse(text)


def test_comments_of_functions_and_classes_are_docstrings():
    function = FunctionDoc(IdDoc("f"), [], [], None, [ReturnDoc(IdDoc("a"))])
    function.comment = "What it does."
    holder = ClassDoc(IdDoc("C"), [], [function])
    holder.comment = "What it is.\nMore."
    module = ast.parse(to_python_script(holder))
    assert ast.get_docstring(module.body[0]) == "What it is.\nMore."
    assert ast.get_docstring(module.body[0].body[1]) == "What it does."


def test_indents_follow_the_option_in_every_kind_of_block():
    inner = ForDoc(IdDoc("i"), IdDoc("n"), [ExprStmtDoc(IdDoc("i"))])
    doc = ClassDoc(IdDoc("C"), [], [FunctionDoc(IdDoc("f"), [], [], None, [inner])])
    for step in (1, 3, 8):
        depths = [len(line) - len(line.lstrip()) for line in
                  to_python_script(doc, indent_spaces=step).split("\n")]  # fmt: skip
        assert depths == [0, step, 2 * step, 3 * step]


def test_what_is_no_doc_is_refused():
    class Other(Doc):
        pass

    with pytest.raises(IRTypeError, match="cannot print a Other: it is no known Doc"):
        to_python_script(Other())
    with pytest.raises(TypeError, match="IdDoc is not iterable"):
        list(IdDoc("x"))
    with pytest.raises(ValueError, match="a tuple on the left side takes no annotation"):
        AssignDoc(TupleDoc([IdDoc("x")]), IdDoc("a"), IdDoc("b"))


@pytest.mark.parametrize("kind", [K.USub, K.Add, K.IfThenElse])
def test_an_operation_has_as_many_operands_as_its_kind(kind):
    expected = {K.USub: 1, K.Add: 2, K.IfThenElse: 3}[kind]
    with pytest.raises(IRTypeError, match=f"{kind.name}: expected {expected} operands, got 4"):
        to_python_script(OperationDoc(kind, [IdDoc("x")] * 4))
