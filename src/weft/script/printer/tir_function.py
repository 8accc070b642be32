"""Docs of PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.ir.function import BaseFunc
from weft.ir.type import TupleType
from weft.script.printer.attributes import mapping_doc
from weft.script.printer.doc import (
    AssignDoc,
    CallDoc,
    CommentDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    FunctionDoc,
    IdDoc,
    LiteralDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, clean_name, prints
from weft.script.printer.shared_values import name_shared
from weft.script.printer.tir_block import alloc_docs
from weft.script.printer.tir_buffer import (
    MATCH,
    buffer_annotation,
    buffer_declaration,
    define_buffer,
    is_simple,
)
from weft.script.printer.tir_stmt import body_docs
from weft.tir.constant import is_const_int
from weft.tir.expr import IterVar, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, Block, BlockRealize, SeqStmt, Stmt


def function_name(func: BaseFunc, d: Docsifier) -> str:
    """The name to print: a given name, the name in the module, the global symbol, or ``main``."""
    if d.binding_names:
        return d.binding_names[-1]
    return clean_name(str(func.attrs.get("global_symbol", "main")))


@prints("PrimFunc")
def _prim_func(func: PrimFunc, d: Docsifier) -> Doc:
    relax_mode, d.relax_mode = d.relax_mode, False
    frame = d.push("tir", is_func=True)
    name = function_name(func, d)
    args, inlined = _parameters(func, d, frame)
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol" or str(v) != name}
    if attrs:
        call = CallDoc(d.tir("func_attr"), (mapping_doc(attrs, d),))
        frame.stmts.append(ExprStmtDoc(call))
    for param, arg in zip(func.params, args, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is not None and id(param) not in inlined:
            name_shared(buffer, d, frame)
            name_doc = define_buffer(buffer, d, frame)
            d.docs.pop(id(buffer))
            rhs = buffer_declaration(buffer, "match_buffer", d, MATCH, args=(arg.lhs,), frame=frame)
            d.docs[id(buffer)] = (buffer, _constant_name(name_doc.name))
            frame.stmts.append(AssignDoc(name_doc, rhs))
    _shared_threads(func.body, d, frame)
    _body(func, d, frame)
    if inlined & d.used_handles:
        d.pop()
        d.relax_mode = relax_mode
        return _prim_func(func, d)
    returns = None
    if not (isinstance(func.ret_type, TupleType) and not func.ret_type.fields) and func.ret_type:
        returns = d.doc(func.ret_type)
    d.pop()
    d.relax_mode = relax_mode
    decorator: ExprDoc = d.tir("prim_func")
    keys: list[str] = []
    if "global_symbol" not in func.attrs:
        keys.append("private")
    if _lacks_root(func):
        keys.append("s_tir")
    if keys:
        decorator = CallDoc(decorator, (), keys, [LiteralDoc(key == "private") for key in keys])
    return FunctionDoc(IdDoc(name), args, [decorator], returns, frame.stmts)


def _constant_name(name: str) -> Callable[[], IdDoc]:
    return lambda: IdDoc(name)


def _parameters(func: PrimFunc, d: Docsifier, frame: Frame) -> tuple[list[AssignDoc], set[int]]:
    """The parameters, and the handles that are printed as an annotation of their buffer."""
    shared: dict[int, int] = {}
    for mapped in func.buffer_map.values():
        shared[id(mapped.data)] = shared.get(id(mapped.data), 0) + 1
    args: list[AssignDoc] = []
    inlined: set[int] = set()
    for param in func.params:
        buffer = func.buffer_map.get(param)
        plain = _is_plain_handle(param) and id(param) not in d.used_handles
        if buffer is not None and plain and is_simple(buffer) and shared[id(buffer.data)] == 1:
            annotation = buffer_annotation(buffer, d, frame)
            args.append(AssignDoc(define_buffer(buffer, d, frame), None, annotation))
            d.define_as(param, _handle_of(param, d), frame)
            inlined.add(id(param))
            continue
        annotation = d.doc(param.type_annotation)
        if isinstance(param, SizeVar):
            annotation = CallDoc(annotation, (), ("is_size_var",), (LiteralDoc(True),))
        args.append(AssignDoc(d.define(param, param.name or "v", frame), None, annotation))
    return args, inlined


def _is_plain_handle(param: Var) -> bool:
    if type(param) is not Var or param.dtype != "handle":
        return False
    return type(param.type_annotation).__name__ == "PrimType"


def _handle_of(param: Var, d: Docsifier) -> Callable[[], IdDoc]:
    """The doc of a handle without a name; if it is used, the function is printed again with one."""

    def make() -> IdDoc:
        d.used_handles.add(id(param))
        return IdDoc(param.name)

    return make


def contains_block(root: Stmt) -> bool:
    """Whether there is a block in a statement (expressions are not searched)."""
    return any(isinstance(stmt, Block | BlockRealize) for stmt in _statements(root))


def _statements(root: Stmt) -> Iterator[Stmt]:
    """Every statement inside, in the order of the text."""
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        if isinstance(stmt, SeqStmt):
            stack.extend(reversed(stmt.seq))
            continue
        for name in ("else_case", "then_case", "body", "block"):
            inner = getattr(stmt, name, None)
            if inner is not None:
                stack.append(inner)


def _shared_threads(body: Stmt, d: Docsifier, frame: Frame) -> None:
    """``tx = T.env_thread(...)`` for a thread variable that several statements launch."""
    launched: set[int] = set()
    for stmt in _statements(body):
        if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread"):
            if not isinstance(stmt.node, IterVar):
                continue
            var = stmt.node.var
            if id(var) in launched and not d.defined(var):
                call = CallDoc(d.tir("env_thread"), [LiteralDoc(stmt.node.thread_tag)])
                if var.dtype != "int32":
                    call = CallDoc(call.callee, [*call.args, LiteralDoc(str(var.dtype))])
                frame.stmts.append(AssignDoc(d.define(var, var.name or "v", frame), call))
            launched.add(id(var))


def implicit_root(func: PrimFunc) -> BlockRealize | None:
    """The root block that a parser adds by itself, so that it need not be printed."""
    realize = func.body
    if not isinstance(realize, BlockRealize) or realize.iter_values:
        return None
    if not is_const_int(realize.predicate, 1):
        return None
    root = realize.block
    special = root.annotations or root.match_buffers or root.reads or root.writes or root.init
    if special or root.name_hint != "root":
        return None
    inner = root.body
    if root.alloc_buffers:
        return realize
    if isinstance(inner, BlockRealize):
        return realize if inner.block.iter_vars else None
    return realize if contains_block(inner) else None


def _lacks_root(func: PrimFunc) -> bool:
    """Whether there are blocks but no root block, which the parser must not add then."""
    body = func.body
    if isinstance(body, BlockRealize) and not body.block.iter_vars:
        return False
    return contains_block(body)


def _body(func: PrimFunc, d: Docsifier, frame: Frame) -> None:
    root = implicit_root(func) if d.config.syntax_sugar else None
    if root is None:
        body_docs(func.body, d, frame)
        return
    frame.stmts.append(CommentDoc('with T.block("root"):'))
    alloc_docs(root.block.alloc_buffers, d, frame)
    body_docs(root.block.body, d, frame)
