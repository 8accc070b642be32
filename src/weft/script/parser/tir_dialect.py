"""Statements of ``@T.prim_func``: what each Python statement means in TensorIR."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft.ir.expr import ExprOp, GlobalVar, PrimExpr, as_prim_expr
from weft.ir.type import PrimType, TupleType, Type
from weft.script.ir_builder import tir_loop
from weft.script.ir_builder import tir_statement as build
from weft.script.ir_builder.base import IRBuilder, IRBuilderFrame
from weft.script.ir_builder.tir_frame import ForFrame, add_statement
from weft.script.ir_builder.tir_value import DTypeConstructor, LetAnnotation, meta_var
from weft.script.parser import shadowing
from weft.script.parser.core import CALLS, Parser, statement
from weft.script.parser.evaluator import BINARY, Values, Words, operand
from weft.script.parser.mistakes import Mistake, block_mistakes, truncating_store
from weft.support.errors import IRTypeError
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Call, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Stmt

RESULTS = (
    "a PrimFunc writes its results into buffers that the caller gives: make the result the last "
    'parameter, C: T.Buffer((8,), "float32"), and leave `return` out'
)
UNFINISHED = "`...` stands for code that is still missing; write statements here, or pass for none"


def parse_prim_func(parser: Parser, node: ast.FunctionDef, private: bool) -> PrimFunc:
    """The PrimFunc of a decorated definition."""
    with parser.in_dialect("tir"), parser.scopes.nested(), IRBuilder() as builder:
        builder.span = parser.evaluator.span(node)
        with parser.guard(node), build.prim_func(private) as frame:
            frame.adds_root = not _is_lowered(node)
            build.func_name(node.name)
            _result_type(parser, node)
            for item in parser.parameters(node):
                with parser.guard(item):
                    value = build.arg(item.arg, _annotation(parser, item))
                parser.scopes.define(item.arg, value)
            parser.shadowing = []
            parser.visit_body(node.body)
        func: PrimFunc = builder.get()
    if frame.as_written is not None:
        parser.mistakes += block_mistakes(frame.as_written)
    if parser.shadowing:
        parser.mistakes += _shadowed(parser, node)
    return func


def _shadowed(parser: Parser, function: ast.FunctionDef) -> list[Mistake]:
    """Warnings for variables that end with a loop or a branch, but are read afterwards."""
    return [
        Mistake(
            f"{name} ends with the statements around it: `{ast.unparse(node)}` makes a new "
            f"variable, and the {name} of line {parser.evaluator.span(outer).line} keeps its "
            f'value; keep what changes in a buffer: {name} = T.alloc_buffer((1,), "float32"), '
            f"then {name}[0] = ...",
            parser.evaluator.span(node),
        )
        for node, name, outer in shadowing.find(function, parser.shadowing)
    ]


def _is_lowered(node: ast.FunctionDef) -> bool:
    """Whether the decorator has ``s_tir=False``: then no root block is added."""
    for decorator in node.decorator_list:
        for item in getattr(decorator, "keywords", ()):
            if item.arg == "s_tir" and getattr(item.value, "value", None) is False:
                return True
    return False


def _annotation(parser: Parser, item: ast.arg) -> Any:
    if item.annotation is None:
        parser.error(
            item,
            f"parameter {item.arg!r} needs a type, such as T.Buffer((128,), 'float32'), "
            "T.handle or T.int32",
        )
    value = parser.evaluate(item.annotation)
    if isinstance(value, DTypeConstructor):
        return value()
    if callable(value) and not isinstance(value, Buffer | Var | type):
        return value()
    return value


def _result_type(parser: Parser, node: ast.FunctionDef) -> None:
    declared = _declared_type(parser, node)
    if declared is not None:
        build.func_ret(declared)


def _declared_type(parser: Parser, node: ast.FunctionDef) -> Type | None:
    if node.returns is None:
        return None
    value = parser.evaluate(node.returns)
    if value is None:
        return None
    if callable(value):
        value = value()
    if isinstance(value, Var):
        return value.type_annotation
    if not isinstance(value, PrimType | TupleType):
        if isinstance(value, Buffer):
            parser.error(node.returns, f"expected a result type such as T.int32 or None; {RESULTS}")
        parser.error(node.returns, "expected a result type such as T.int32 or None")
    return value


def declare_prim_func(parser: Parser, node: ast.FunctionDef, var: GlobalVar) -> None:
    """Note the type that calls of a PrimFunc have, before any body is parsed."""
    with parser.in_dialect("tir"), parser.scopes.nested():
        declared = _declared_type(parser, node)
    if isinstance(declared, PrimType):
        parser.return_types[var] = declared.dtype


def call(parser: Parser, function: Callable[..., object], args: Values, kwargs: Words) -> object:
    """A call inside a PrimFunc."""
    if isinstance(function, GlobalVar):
        return Call(str(parser.return_types.get(function, "void")), function, args)
    if function is range:
        return _range(*args)
    return function(*args, **kwargs)


CALLS["tir"] = call


def _range(*args: Any) -> object:
    if all(isinstance(item, int) for item in args):
        return range(*args)
    if len(args) > 2:
        raise IRTypeError("range with a step cannot have symbolic bounds")
    return tir_loop.serial(*args)


@statement("tir", ast.For)
def visit_for(parser: Parser, node: ast.For) -> None:
    """``for`` over T.serial, T.grid, range ..."""
    frame = parser.evaluate(node.iter)
    if isinstance(frame, range):
        if frame.step != 1:
            parser.error(node.iter, "range with a step is no TensorIR loop; scale the index")
        frame = (
            tir_loop.serial(frame.stop)
            if frame.start == 0
            else (tir_loop.serial(frame.start, frame.stop))
        )
    if not isinstance(frame, ForFrame):
        parser.error(
            node.iter,
            "expected a loop: range, T.serial, T.grid, T.parallel, T.vectorized, T.unroll or "
            f"T.thread_binding, got {_kind(frame)}",
        )
    if node.orelse:
        parser.error(node.orelse[0], "a TensorIR loop has no else branch")
    with parser.scopes.nested(), frame as variables:
        _bind(parser, node.target, variables)
        parser.visit_body(node.body)


@statement("tir", ast.While)
def visit_while(parser: Parser, node: ast.While) -> None:
    """``while``."""
    if node.orelse:
        parser.error(node.orelse[0], "a TensorIR loop has no else branch")
    condition = parser.evaluate(node.test)
    with parser.scopes.nested(), build.While(condition):
        parser.visit_body(node.body)


@statement("tir", ast.If)
def visit_if(parser: Parser, node: ast.If) -> None:
    """``if``: a branch at run time, or at parse time if the condition is a Python value."""
    condition = operand(parser.evaluate(node.test))
    if isinstance(condition, Buffer):
        parser.error(
            node.test,
            f"expected a condition, got the buffer {condition.name}; read an element: A[0]",
        )
    if not isinstance(condition, ExprOp):
        parser.visit_body(node.body if condition else node.orelse)
        return
    with build.If(condition):
        with parser.scopes.nested(), build.Then():
            parser.visit_body(node.body)
        if node.orelse:
            with parser.scopes.nested(), build.Else():
                parser.visit_body(node.orelse)


@statement("tir", ast.With)
def visit_with(parser: Parser, node: ast.With) -> None:
    """``with``: blocks and other statements that contain statements."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(parser.scopes.nested())
        for item in node.items:
            frame = parser.evaluate(item.context_expr)
            if not isinstance(frame, IRBuilderFrame):
                parser.error(
                    item.context_expr,
                    f"expected T.block, T.init, T.attr, ... after `with`, got {_kind(frame)}",
                )
            value = stack.enter_context(frame)
            if item.optional_vars is not None:
                _bind(parser, item.optional_vars, value)
        parser.visit_body(node.body)


@statement("tir", ast.Assign)
def visit_assign(parser: Parser, node: ast.Assign) -> None:
    """``A[i] = x``, ``x = value``, ``i, j = T.axis.remap(...)``."""
    if len(node.targets) != 1:
        parser.error(node.targets[1], "one assignment has one left side: a = b = c is none")
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        _store(parser, target, parser.evaluate(node.value))
        return
    value = parser.evaluate(node.value)
    for name, item in parser.evaluator.match(target, value):
        _note_shadowing(parser, name, node)
        parser.scopes.define(name, _assigned(parser, name, item), shadow=False)


def _note_shadowing(parser: Parser, name: str, node: ast.AST) -> None:
    """Note an assignment to a name that is a variable of an outer scope."""
    frames = parser.scopes.frames
    if name not in frames[-1]:
        for frame in frames[:-1]:
            if isinstance(frame.get(name), Var):
                parser.shadowing.append(node)


def _store(parser: Parser, target: ast.Subscript, value: Any) -> None:
    buffer = parser.evaluate(target.value)
    if not isinstance(buffer, Buffer):
        hint = ""
        if type(buffer).__module__.partition(".")[0] in ("numpy", "torch"):
            hint = '; memory of a PrimFunc is made by T.alloc_buffer((8,), "float32")'
        parser.error(target.value, f"expected a buffer to store into, got {_kind(buffer)}{hint}")
    indices = parser.evaluate(target.slice)
    with parser.guard(target):
        build.buffer_store(buffer, value, indices)
    if buffer.dtype.is_integral:
        span = parser.evaluator.span(target)
        parser.mistakes += truncating_store(buffer, build.as_value(value), span)


def _assigned(parser: Parser, name: str, value: object) -> object:
    """What a name stands for after ``name = value``."""
    if isinstance(value, meta_var):
        return value.value
    if isinstance(value, IRBuilderFrame):
        return IRBuilder.name(name, value.enter_rest())
    if isinstance(value, list | tuple):
        return [_assigned(parser, f"{name}_{i}", item) for i, item in enumerate(value)]
    if isinstance(value, Var) and (not value.name or not parser.scopes.holds(value)):
        return IRBuilder.name(name, value)  # a new variable, from T.int32() or te.var("n")
    if isinstance(value, Buffer | IterVar):
        return IRBuilder.name(name, value)
    if isinstance(value, BufferRegion):
        value = operand(value)
    if isinstance(value, PrimExpr | int | float) and not isinstance(value, GlobalVar):
        return IRBuilder.name(name, build.LetStmt(value).enter_rest())
    return value


@statement("tir", ast.AugAssign)
def visit_aug_assign(parser: Parser, node: ast.AugAssign) -> None:
    """``A[i] += x`` and ``x += y``."""
    load = ast.fix_missing_locations(ast.copy_location(_as_load(node.target), node.target))
    old, value = operand(parser.evaluate(load)), operand(parser.evaluate(node.value))
    with parser.guard(node):
        result = BINARY[type(node.op)](old, value)
    if isinstance(node.target, ast.Subscript):
        _store(parser, node.target, result)
    else:
        for name, item in parser.evaluator.match(node.target, result):
            _note_shadowing(parser, name, node)
            parser.scopes.define(name, _assigned(parser, name, item))


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Name(getattr(target, "id", "?"), ast.Load())


@statement("tir", ast.AnnAssign)
def visit_ann_assign(parser: Parser, node: ast.AnnAssign) -> None:
    """``x: T.int32 = value`` binds a variable of that type."""
    if node.value is None or not isinstance(node.target, ast.Name):
        parser.error(node, "expected `name: type = value`")
    name = node.target.id
    hint = parser.evaluate(node.annotation)
    value = operand(parser.evaluate(node.value))
    if isinstance(hint, LetAnnotation):
        hint = hint.dtype
    if callable(hint) and not isinstance(hint, Var):
        hint = hint()
    if isinstance(value, IRBuilderFrame) or isinstance(value, Buffer):
        parser.scopes.define(name, _assigned(parser, name, value), shadow=False)
        return
    if hint is not None and not isinstance(hint, Var):
        parser.error(node.annotation, f"expected a type such as T.int32, got {_kind(hint)}")
    _note_shadowing(parser, name, node)
    frame = build.LetStmt(value, var=hint)
    parser.scopes.define(name, IRBuilder.name(name, frame.enter_rest()), shadow=False)


@statement("tir", ast.Expr)
def visit_expr(parser: Parser, node: ast.Expr) -> None:
    """A call for its effect, a frame for the statements that follow, a docstring."""
    value = parser.evaluate(node.value)
    if value is None or isinstance(value, str):
        return
    if isinstance(value, IRBuilderFrame):
        value.enter_rest()
    elif isinstance(value, Stmt):
        add_statement(value)
    elif isinstance(value, PrimExpr | int | float):
        build.evaluate(value)
    elif isinstance(value, Var | Buffer | tuple | list):
        return
    elif value is Ellipsis:
        parser.error(node, UNFINISHED)
    else:
        parser.error(node, f"expected a statement, got {_kind(value)}")


@statement("tir", ast.Assert)
def visit_assert(parser: Parser, node: ast.Assert) -> None:
    """``assert condition, message``."""
    condition = as_prim_expr(operand(parser.evaluate(node.test)))
    message = "assertion failed" if node.msg is None else parser.evaluate(node.msg)
    build.Assert(condition, getattr(message, "value", message)).enter_rest()


@statement("tir", ast.Return)
def visit_return(parser: Parser, node: ast.Return) -> None:
    """``return x``: the call ``T.ret(x)``."""
    if node.value is None:
        parser.error(node, "expected a value to return; a PrimFunc writes results into buffers")
    value = parser.evaluate(node.value)
    if isinstance(value, Buffer | tuple | list):
        what = f"the buffer {value.name}" if isinstance(value, Buffer) else "several values"
        parser.error(node, f"expected a number to return, got {what}; {RESULTS}")
    build.evaluate(tir_op.ret(as_prim_expr(operand(value))))


@statement("tir", ast.Pass)
def visit_pass(parser: Parser, node: ast.Pass) -> None:
    """``pass``: nothing, as T.evaluate(0)."""
    build.evaluate(0)


def _unsupported(parser: Parser, node: ast.AST) -> None:
    word = type(node).__name__.lower()
    parser.error(node, f"{word} has no TensorIR form; use a condition or T.while's test instead")


statement("tir", ast.Break)(_unsupported)
statement("tir", ast.Continue)(_unsupported)


def _bind(parser: Parser, target: ast.expr, value: object) -> None:
    for name, item in parser.evaluator.match(target, value):
        parser.scopes.define(name, IRBuilder.name(name, item))


def _kind(value: object) -> str:
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    return f"{type(value).__name__} {value!r}"[:80]
