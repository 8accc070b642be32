"""Docs to text: precedence, layout, comments, underlining."""

import pytest

from weft.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    DocStringDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
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
from weft.script.printer.doc_printer import to_python_script
from weft.support.errors import TVMError

K = OperationKind
a, b, c, x, y = (IdDoc(name) for name in "abcxy")


def op(kind, *operands):
    return OperationDoc(kind, operands)


EXPRESSIONS = [
    (LiteralDoc(None), "None"),
    (LiteralDoc(True), "True"),
    (LiteralDoc('\n\t\\te"st\r\x00'), '"\\n\\t\\\\te\\"st\\r\\x00"'),
    (LiteralDoc("naïve"), '"naïve"'),
    (LiteralDoc(-1), "-1"),
    (LiteralDoc(3.25), "3.25"),
    (LiteralDoc(1.0), "1.0"),
    (LiteralDoc(1e300), "1e+300"),
    (LiteralDoc(float("-inf")), '"-inf"'),
    (x.attr("y").attr("z"), "x.y.z"),
    (x[a], "x[a]"),
    (x[a, b], "x[a, b]"),
    (x[()], "x[()]"),
    (x[a:b, SliceDoc(None, None, c), SliceDoc(a)], "x[a:b, ::c, a:]"),
    (x.call(), "x()"),
    (x.call(a, b, k=c), "x(a, b, k=c)"),
    (x.call(k=c), "x(k=c)"),
    (LambdaDoc([a, b], c), "lambda a, b: c"),
    (LambdaDoc([a], b).call(c), "(lambda a: b)(c)"),
    (ListDoc(), "[]"),
    (ListDoc([a]), "[a]"),
    (TupleDoc(), "()"),
    (TupleDoc([a]), "(a,)"),
    (TupleDoc([a, b]), "(a, b)"),
    (DictDoc({LiteralDoc("k"): a}), '{"k": a}'),
    (op(K.USub, op(K.Add, a, b)), "-(a + b)"),
    (op(K.Invert, a), "~a"),
    (op(K.Not, op(K.And, a, b)), "not (a and b)"),
    (op(K.Mult, op(K.Add, a, b), c), "(a + b) * c"),
    (op(K.Add, op(K.Mult, a, b), c), "a * b + c"),
    (op(K.Sub, a, op(K.Sub, b, c)), "a - (b - c)"),
    (op(K.Pow, op(K.Pow, a, b), c), "(a ** b) ** c"),
    (op(K.Lt, op(K.Lt, a, b), c), "(a < b) < c"),
    (op(K.BitOr, op(K.BitAnd, a, b), op(K.BitXor, b, c)), "a & b | b ^ c"),
    (op(K.LShift, a, op(K.RShift, b, c)), "a << (b >> c)"),
    (op(K.Or, op(K.And, a, b), c), "a and b or c"),
    (op(K.And, op(K.Or, a, b), c), "(a or b) and c"),
    (op(K.IfThenElse, a, b, c), "b if a else c"),
    (op(K.Add, op(K.IfThenElse, a, b, c), a), "(b if a else c) + a"),
    (op(K.Add, a, b).attr("dtype"), "(a + b).dtype"),
]


@pytest.mark.parametrize(("doc", "expected"), EXPRESSIONS, ids=[row[1] for row in EXPRESSIONS])
def test_expression(doc, expected):
    assert to_python_script(doc) == expected


STATEMENTS = [
    (AssignDoc(x, a), "x = a"),
    (AssignDoc(x, a, b), "x: b = a"),
    (AssignDoc(x, None, b), "x: b"),
    (AssignDoc(TupleDoc([x, y]), TupleDoc([a, b])), "x, y = a, b"),
    (IfDoc(a, [ExprStmtDoc(x)]), "if a:\n    x"),
    (IfDoc(a, [], [ExprStmtDoc(x)]), "if a:\n    pass\nelse:\n    x"),
    (WhileDoc(a, []), "while a:\n    pass"),
    (ForDoc(TupleDoc([x, y]), a, [ReturnDoc(b)]), "for x, y in a:\n    return b"),
    (ScopeDoc(x, a, []), "with a as x:\n    pass"),
    (ScopeDoc(a, []), "with a:\n    pass"),
    (AssertDoc(a, b), "assert a, b"),
    (CommentDoc("one\n\ntwo"), "# one\n#\n# two"),
    (DocStringDoc("text"), '"""\ntext\n"""'),
    (StmtBlockDoc([ExprStmtDoc(a), ExprStmtDoc(b)]), "a\nb"),
    (FunctionDoc(x, [AssignDoc(a, None, b)], [c], y, []), "@c\ndef x(a: b) -> y:\n    pass"),
    (
        ClassDoc(x, [c], [FunctionDoc(a, [], [], None, []), FunctionDoc(b, [], [], None, [])]),
        "@c\nclass x:\n    def a():\n        pass\n\n    def b():\n        pass",
    ),
]


@pytest.mark.parametrize(("doc", "expected"), STATEMENTS, ids=[row[1] for row in STATEMENTS])
def test_statement(doc, expected):
    assert to_python_script(doc) == expected


def test_comments_stand_behind_lines_and_above_blocks():
    line, block = AssignDoc(x, a), IfDoc(a, [ExprStmtDoc(x)])
    line.comment, block.comment = "why", "one\ntwo"
    assert to_python_script(line) == "x = a  # why"
    assert to_python_script(block) == "# one\n# two\nif a:\n    x"
    line.comment = "two\nlines"
    with pytest.raises(ValueError, match="must be one line"):
        to_python_script(line)


def test_empty_docs_are_refused():
    with pytest.raises(ValueError, match="expected rhs or annotation"):
        AssignDoc(x)
    with pytest.raises(ValueError, match="both branches are empty"):
        IfDoc(x, [], [])
    with pytest.raises(TVMError, match="Add: expected 2 operands, got 1"):
        to_python_script(OperationDoc(K.Add, [a]))


def test_indent_and_line_numbers():
    doc = WhileDoc(a, [ExprStmtDoc(b)])
    assert to_python_script(doc, indent_spaces=2) == "while a:\n  b"
    assert to_python_script(doc, print_line_numbers=True) == "1 while a:\n2     b"


def test_underlining_with_context():
    target = IdDoc("target")
    target.source_paths = ["here"]
    lines = [ExprStmtDoc(IdDoc(f"line{i}")) for i in range(4)]
    call = IdDoc("f").call(x, target)
    doc = StmtBlockDoc([*lines, ExprStmtDoc(call), *lines])
    text = to_python_script(doc, num_context_lines=1, path_to_underline=["here"])
    assert text == (
        "(... 3 lines skipped ...)\n"
        "line3\n"
        "f(x, target)\n"
        "     ^^^^^^\n"
        "line0\n"
        "(... 3 lines skipped ...)"
    )
