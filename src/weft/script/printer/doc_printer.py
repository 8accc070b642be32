"""Writes docs as Python text, and finds the text ranges of docs that are to be underlined.

One table of precedences decides on parentheses; comparisons are never chained. The writer notes the
text range of every doc whose ``source`` or ``source_paths`` are a target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.script.printer import doc as docs
from weft.script.printer.doc import Doc, ExprDoc, OperationKind, StmtDoc
from weft.script.printer.underlining import Target, decorate
from weft.support.errors import IRTypeError, IRValueError

(
    LOWEST, LAMBDA, CONDITIONAL, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM,
    PRODUCT, UNARY, POWER, ATOM,
) = range(16)  # fmt: skip

K = OperationKind
OPERATORS: Final[dict[OperationKind, tuple[str, int]]] = {
    K.USub: ("-", UNARY), K.Invert: ("~", UNARY), K.Not: ("not ", NOT),
    K.Add: ("+", SUM), K.Sub: ("-", SUM), K.Mult: ("*", PRODUCT), K.Div: ("/", PRODUCT),
    K.FloorDiv: ("//", PRODUCT), K.Mod: ("%", PRODUCT), K.Pow: ("**", POWER),
    K.LShift: ("<<", SHIFT), K.RShift: (">>", SHIFT), K.BitAnd: ("&", BIT_AND),
    K.BitOr: ("|", BIT_OR), K.BitXor: ("^", BIT_XOR), K.Lt: ("<", COMPARE), K.LtE: ("<=", COMPARE),
    K.Eq: ("==", COMPARE), K.NotEq: ("!=", COMPARE), K.Gt: (">", COMPARE), K.GtE: (">=", COMPARE),
    K.And: ("and", AND), K.Or: ("or", OR), K.IfThenElse: ("if", CONDITIONAL),
}  # fmt: skip


def to_python_script(
    doc: Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[object] | None = None,
) -> str:
    """The text of a doc; options as TVM's function of that name."""
    writer = DocWriter(indent_spaces, path_to_underline or ())
    writer.block_or_doc(doc)
    limit = None if num_context_lines is None or num_context_lines < 0 else num_context_lines
    return writer.finish(print_line_numbers, limit)


def quote(text: str) -> str:
    """A string literal in double quotes, as TVM escapes it."""
    return '"' + text.translate(_ESCAPES) + '"'


_ESCAPES: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(32), 127)},
    ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r",
}  # fmt: skip


def format_float(value: float) -> str:
    """The shortest digits that read back as the same double; inf and nan as strings."""
    return repr(value) if math.isfinite(value) else f'"{value}"'


class DocWriter:
    """Collects the text of docs; ``out`` is a list of pieces, lines end with a newline piece."""

    def __init__(self, indent_spaces: int, targets: Sequence[object] = ()) -> None:
        self.step = indent_spaces
        self.margin = "\n"
        self.out: list[str] = []
        self.targets = [Target(given) for given in targets]
        self.length = 0
        self.counted = 0

    # ---- positions of underlined docs

    def position(self) -> int:
        for piece in self.out[self.counted :]:
            self.length += len(piece)
        self.counted = len(self.out)
        return self.length

    # ---- dispatch

    def doc(self, doc: Doc) -> None:
        below = [(target, depth) for target in self.targets if (depth := target.depth(doc))]
        if below:
            start = self.position()
            self.emit(doc)
            for target, depth in below:
                target.mark(depth, (start, self.position()))
        else:
            self.emit(doc)

    def emit(self, doc: Doc) -> None:
        writer = WRITERS.get(type(doc))
        if writer is None:
            raise IRTypeError(f"cannot print a {type(doc).__name__}: it is no known Doc")
        writer(self, doc)

    def block_or_doc(self, doc: Doc) -> None:
        self.doc(doc)

    def block(self, stmts: Sequence[Doc]) -> None:
        outer = self.margin
        self.margin = outer + " " * self.step
        for stmt in stmts:
            self.out.append(self.margin)
            self.doc(stmt)
        if not stmts:
            self.out.append(self.margin)
            self.out.append("pass")
        self.margin = outer

    def joined(self, items: Sequence[Doc]) -> None:
        out, first = self.out, True
        for item in items:
            if not first:
                out.append(", ")
            first = False
            self.doc(item)

    def child(self, doc: Doc, minimum: int) -> None:
        """An operand, in parentheses if it binds less tightly than ``minimum``."""
        if precedence_of(doc) < minimum:
            self.out.append("(")
            self.doc(doc)
            self.out.append(")")
        else:
            self.doc(doc)

    def comment_behind(self, doc: StmtDoc) -> None:
        if doc.comment is not None:
            if "\n" in doc.comment:
                raise IRValueError("a comment behind a statement must be one line")
            self.out.append(f"  # {doc.comment}")

    def comment_above(self, doc: StmtDoc) -> None:
        if doc.comment is not None:
            self.comment_lines(doc.comment)
            self.out.append(self.margin)

    def comment_lines(self, text: str) -> None:
        lines = text.split("\n")
        self.out.append(self.margin.join([f"# {line}" if line else "#" for line in lines]))

    # ---- result

    def finish(self, line_numbers: bool, context: int | None) -> str:
        text = "".join(self.out)
        body = text.rstrip()
        marks = [mark for target in self.targets for mark in target.marks]
        if not (marks or line_numbers or context is not None):
            return _without_trailing_blanks(body)
        return decorate(body, marks, line_numbers, context)


def _without_trailing_blanks(text: str) -> str:
    return text if "    \n" not in text else "\n".join([ln.rstrip() for ln in text.split("\n")])


def precedence_of(doc: Doc) -> int:
    """The precedence of the outermost operator in the text of a doc."""
    kind = type(doc)
    if kind is docs.OperationDoc:
        return OPERATORS[doc.kind][1]  # type: ignore[attr-defined] # an OperationDoc
    if kind is docs.LiteralDoc:
        value = doc.value  # type: ignore[attr-defined] # a LiteralDoc
        return UNARY if isinstance(value, int | float) and _has_sign(value) else ATOM
    return LAMBDA if kind is docs.LambdaDoc else ATOM


def _has_sign(value: float) -> bool:
    """Whether the digits of a number stand behind a minus; infinities are texts."""
    if isinstance(value, int):
        return value < 0
    return math.isfinite(value) and math.copysign(1, value) < 0


# ---- one writer for each class of doc


def _literal(writer: DocWriter, doc: docs.LiteralDoc) -> None:
    value = doc.value
    if value is None or value is True or value is False:
        writer.out.append(str(value))
    elif isinstance(value, str):
        writer.out.append(quote(value))
    elif isinstance(value, float):
        writer.out.append(format_float(value))
    else:
        writer.out.append(str(value))


def _identifier(writer: DocWriter, doc: docs.IdDoc) -> None:
    writer.out.append(doc.name)


def _attribute(writer: DocWriter, doc: docs.AttrAccessDoc) -> None:
    value = getattr(doc.value, "value", None)
    is_integer = type(doc.value) is docs.LiteralDoc and type(value) is int
    writer.child(doc.value, ATOM + 1 if is_integer else ATOM)  # ``1.x`` is no attribute of 1
    writer.out.append("." + doc.name)


def _index(writer: DocWriter, doc: docs.IndexDoc) -> None:
    writer.child(doc.value, ATOM)
    if doc.indices:
        writer.out.append("[")
        writer.joined(doc.indices)
        writer.out.append("]")
    else:
        writer.out.append("[()]")


def _slice(writer: DocWriter, doc: docs.SliceDoc) -> None:
    if doc.start is not None:
        writer.doc(doc.start)
    writer.out.append(":")
    if doc.stop is not None:
        writer.doc(doc.stop)
    if doc.step is not None:
        writer.out.append(":")
        writer.doc(doc.step)


def _call(writer: DocWriter, doc: docs.CallDoc) -> None:
    writer.child(doc.callee, ATOM)
    out = writer.out
    out.append("(")
    writer.joined(doc.args)
    separator = ", " if doc.args else ""
    for key, value in zip(doc.kwargs_keys, doc.kwargs_values, strict=True):
        out.append(f"{separator}{key}=")
        writer.doc(value)
        separator = ", "
    out.append(")")


def _lambda(writer: DocWriter, doc: docs.LambdaDoc) -> None:
    writer.out.append("lambda ")
    writer.joined(doc.args)
    writer.out.append(": ")
    writer.child(doc.body, LAMBDA)


def _list(writer: DocWriter, doc: docs.ListDoc) -> None:
    writer.out.append("[")
    writer.joined(doc.elements)
    writer.out.append("]")


def _tuple(writer: DocWriter, doc: docs.TupleDoc) -> None:
    writer.out.append("(")
    writer.joined(doc.elements)
    writer.out.append(",)" if len(doc.elements) == 1 else ")")


def _dict(writer: DocWriter, doc: docs.DictDoc) -> None:
    out = writer.out
    out.append("{")
    separator = ""
    for key, value in zip(doc.keys, doc.values, strict=True):
        out.append(separator)
        writer.doc(key)
        out.append(": ")
        writer.doc(value)
        separator = ", "
    out.append("}")


def _operation(writer: DocWriter, doc: docs.OperationDoc) -> None:
    text, level = OPERATORS[doc.kind]
    operands = doc.operands
    expected = 1 if doc.kind < K._UnaryEnd else 3 if doc.kind is K.IfThenElse else 2
    if len(operands) != expected:
        raise IRTypeError(
            f"OperationDoc {doc.kind.name}: expected {expected} operands, got {len(operands)}"
        )
    if expected == 1:
        writer.out.append(text)
        writer.child(operands[0], level)
    elif expected == 3:
        writer.child(operands[1], level + 1)
        writer.out.append(" if ")
        writer.child(operands[0], level + 1)
        writer.out.append(" else ")
        writer.child(operands[2], level + 1)
    else:
        strict_left = level in (COMPARE, POWER)
        writer.child(operands[0], level + 1 if strict_left else level)
        writer.out.append(f" {text} ")
        is_signed = level == POWER and type(operands[1]) is docs.LiteralDoc  # ``x ** -1``
        writer.child(operands[1], UNARY if is_signed else level + 1)


def _stmts(writer: DocWriter, doc: docs.StmtBlockDoc) -> None:
    first = True
    for stmt in doc.stmts:
        if not first:
            writer.out.append(writer.margin)
        first = False
        writer.doc(stmt)


def _assign(writer: DocWriter, doc: docs.AssignDoc) -> None:
    lhs = doc.lhs
    if isinstance(lhs, docs.TupleDoc) and lhs.elements:
        writer.joined(lhs.elements)
        if len(lhs.elements) == 1:
            writer.out.append(",")
    else:
        writer.doc(lhs)
    if doc.annotation is not None:
        writer.out.append(": ")
        writer.doc(doc.annotation)
    if doc.rhs is not None:
        writer.out.append(" = ")
        if isinstance(doc.rhs, docs.TupleDoc) and len(doc.rhs.elements) > 1:
            writer.joined(doc.rhs.elements)
        else:
            writer.doc(doc.rhs)
    writer.comment_behind(doc)


def _if(writer: DocWriter, doc: docs.IfDoc) -> None:
    writer.comment_above(doc)
    writer.out.append("if ")
    writer.doc(doc.predicate)
    writer.out.append(":")
    writer.block(doc.then_branch)
    if doc.else_branch:
        writer.out.append(writer.margin + "else:")
        writer.block(doc.else_branch)


def _while(writer: DocWriter, doc: docs.WhileDoc) -> None:
    writer.comment_above(doc)
    writer.out.append("while ")
    writer.doc(doc.predicate)
    writer.out.append(":")
    writer.block(doc.body)


def _for(writer: DocWriter, doc: docs.ForDoc) -> None:
    writer.comment_above(doc)
    writer.out.append("for ")
    if isinstance(doc.lhs, docs.TupleDoc):
        writer.joined(doc.lhs.elements)
        if len(doc.lhs.elements) == 1:
            writer.out.append(",")
    else:
        writer.doc(doc.lhs)
    writer.out.append(" in ")
    writer.doc(doc.rhs)
    writer.out.append(":")
    writer.block(doc.body)


def _scope(writer: DocWriter, doc: docs.ScopeDoc) -> None:
    writer.comment_above(doc)
    writer.out.append("with ")
    writer.doc(doc.rhs)
    if doc.lhs is not None:
        writer.out.append(" as ")
        writer.doc(doc.lhs)
    writer.out.append(":")
    writer.block(doc.body)


def _expr_stmt(writer: DocWriter, doc: docs.ExprStmtDoc) -> None:
    writer.doc(doc.expr)
    writer.comment_behind(doc)


def _assert(writer: DocWriter, doc: docs.AssertDoc) -> None:
    writer.out.append("assert ")
    writer.doc(doc.test)
    if doc.msg is not None:
        writer.out.append(", ")
        writer.doc(doc.msg)
    writer.comment_behind(doc)


def _return(writer: DocWriter, doc: docs.ReturnDoc) -> None:
    writer.out.append("return ")
    writer.doc(doc.value)
    writer.comment_behind(doc)


def _decorators(writer: DocWriter, decorators: Sequence[ExprDoc]) -> None:
    for decorator in decorators:
        writer.out.append("@")
        writer.doc(decorator)
        writer.out.append(writer.margin)


def _docstring_block(writer: DocWriter, text: str) -> None:
    outer = writer.margin
    writer.margin = outer + " " * writer.step
    writer.out.append(writer.margin)
    _docstring_text(writer, text)
    writer.margin = outer


def _docstring_text(writer: DocWriter, text: str) -> None:
    lines = ['"""', *text.split("\n"), '"""']
    writer.out.append(writer.margin.join(lines))


def _function(writer: DocWriter, doc: docs.FunctionDoc) -> None:
    _decorators(writer, doc.decorators)
    writer.out.append("def ")
    writer.doc(doc.name)
    writer.out.append("(")
    writer.joined(doc.args)
    writer.out.append(")")
    if doc.return_type is not None:
        writer.out.append(" -> ")
        writer.doc(doc.return_type)
    writer.out.append(":")
    if doc.comment is not None:
        _docstring_block(writer, doc.comment)
    writer.block(doc.body)
    writer.out.append("\n")


def _class(writer: DocWriter, doc: docs.ClassDoc) -> None:
    _decorators(writer, doc.decorators)
    writer.out.append("class ")
    writer.doc(doc.name)
    writer.out.append(":")
    if doc.comment is not None:
        _docstring_block(writer, doc.comment)
    writer.block(doc.body)


def _comment(writer: DocWriter, doc: docs.CommentDoc) -> None:
    if doc.comment:
        writer.comment_lines(doc.comment)


def _docstring(writer: DocWriter, doc: docs.DocStringDoc) -> None:
    if doc.comment:
        _docstring_text(writer, doc.comment)


WRITERS: Final[dict[type, Callable[[DocWriter, Any], None]]] = {
    docs.LiteralDoc: _literal, docs.IdDoc: _identifier, docs.AttrAccessDoc: _attribute,
    docs.IndexDoc: _index, docs.SliceDoc: _slice, docs.CallDoc: _call, docs.LambdaDoc: _lambda,
    docs.ListDoc: _list, docs.TupleDoc: _tuple, docs.DictDoc: _dict,
    docs.OperationDoc: _operation, docs.StmtBlockDoc: _stmts, docs.AssignDoc: _assign,
    docs.IfDoc: _if, docs.WhileDoc: _while, docs.ForDoc: _for, docs.ScopeDoc: _scope,
    docs.ExprStmtDoc: _expr_stmt, docs.AssertDoc: _assert, docs.ReturnDoc: _return,
    docs.FunctionDoc: _function, docs.ClassDoc: _class, docs.CommentDoc: _comment,
    docs.DocStringDoc: _docstring,
}  # fmt: skip
