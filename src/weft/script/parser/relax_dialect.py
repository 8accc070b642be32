"""Statements of ``@R.function``: what each Python statement means in the graph."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Iterable

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.node import Node, expect
from weft.relax.expr import Expr, Function, Var, const
from weft.relax.expr import Tuple as TupleNode
from weft.relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo
from weft.script.ir_builder import relax as build
from weft.script.ir_builder.base import IRBuilder, IRBuilderFrame
from weft.script.ir_builder.relax_frame import DataflowFrame, FunctionFrame
from weft.script.ir_builder.relax_info import as_struct_info
from weft.script.ir_builder.tir_value import meta_var
from weft.script.parser.core import ATTRIBUTES, CALLS, FALLBACKS, Parser, statement
from weft.script.parser.evaluator import Values, Words
from weft.support.errors import IRValueError
from weft.tir.expr import Var as TirVar

_BARE = {
    "Tensor": build.Tensor, "Shape": build.Shape, "Object": build.Object, "Tuple": build.Tuple,
}  # fmt: skip
"""Names that the texts of 2022 write without ``R.``."""


def parse_function(
    parser: Parser, node: ast.FunctionDef, private: bool, pure: bool, local: bool = False
) -> Function:
    """The graph function of a decorated definition."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(parser.in_dialect("relax"))
        stack.enter_context(parser.scopes.nested())
        builder = IRBuilder.current() if local else stack.enter_context(IRBuilder())
        if not local:
            builder.global_infos, builder.emitted = parser.module_infos, parser.emitted
            builder.reserved = tuple(parser.functions)
        builder.span = parser.evaluator.span(node)
        frame = FunctionFrame(pure, private)
        with parser.guard(node), frame:
            frame.name = node.name
            evaluated = _signature(parser, node, frame)
            parser.visit_body([line for line in node.body if line not in evaluated])
            if frame.output is None:
                parser.error(node, f"function {node.name!r} has no return")
        if not local:
            parser.emitted = builder.emitted
        func = builder.local_function if local else builder.get()
    return expect(func, Function)


def declare_function(parser: Parser, node: ast.FunctionDef, pure: bool) -> FuncStructInfo:
    """The signature of a function, for calls before the function is parsed."""
    with parser.in_dialect("relax"), parser.scopes.nested(), IRBuilder() as builder:
        frame = FunctionFrame(pure)
        frame.name = node.name
        builder.global_infos = parser.module_infos
        builder.frames.append(frame)
        frame.builder = builder
        with parser.guard(node):
            frame._enter()
            _signature(parser, node, frame)
        builder.frames.clear()
    infos = [param.struct_info for param in frame.params]
    return FuncStructInfo(infos, frame.ret_struct_info or ObjectStructInfo(), pure)


def _signature(parser: Parser, node: ast.FunctionDef, frame: FunctionFrame) -> list[ast.stmt]:
    """Add the parameters and the type of the result; return the lines of the body used for that."""
    items = parser.parameters(node)
    _declared_symbols(parser, node, frame)
    evaluated = _named_extents(parser, node, frame, {item.arg for item in items})
    for item in items:
        if item.annotation is None:
            parser.error(
                item, f"parameter {item.arg!r} needs a type, such as R.Tensor((2, 3), 'float32')"
            )
        with parser.guard(item.annotation):
            info = as_struct_info(parser.evaluate(item.annotation))
        with parser.guard(item):
            var = frame.add_param(item.arg, info)
        var.span = parser.evaluator.span(item)
        parser.scopes.define(item.arg, var)
    _define_symbols(parser, frame)
    if node.returns is not None:
        with parser.guard(node.returns):
            frame.ret_struct_info = as_struct_info(parser.evaluate(node.returns))
    return evaluated


def _declared_symbols(parser: Parser, node: ast.FunctionDef, frame: FunctionFrame) -> None:
    """Define the symbols that the body declares: ``n = T.int64(is_size_var=True)``."""
    for stmt in node.body:
        value = getattr(stmt, "value", None)
        if not (isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name)):
            continue
        if not isinstance(value, ast.Call) or value.args:
            continue
        if re.fullmatch(r"u?int\d+", getattr(value.func, "attr", "")):
            symbol = parser.evaluate(value)
            if isinstance(symbol, TirVar) and not symbol.name:
                name = stmt.targets[0].id
                frame.symbols[name] = IRBuilder.name(name, symbol)


def _named_extents(
    parser: Parser, node: ast.FunctionDef, frame: FunctionFrame, parameters: set[str]
) -> list[ast.stmt]:
    """Evaluate the first lines ``x = T.meta_var(n * n)``: the signature may use their names."""
    evaluated: list[ast.stmt] = []
    with parser.scopes.nested():
        for stmt in node.body:
            value = getattr(stmt, "value", None)
            if not (isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name)):
                break
            if not (isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "meta_var"):
                if stmt.targets[0].id not in frame.symbols:
                    break
                continue
            used = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
            if used & parameters:
                break
            _define_symbols(parser, frame)
            extent = parser.evaluate(value)
            if not isinstance(extent, meta_var) or not isinstance(extent.value, PrimExpr):
                break
            frame.symbols[stmt.targets[0].id] = extent.value
            evaluated.append(stmt)
    return evaluated


def _define_symbols(parser: Parser, frame: FunctionFrame) -> None:
    for name, symbol in frame.symbols.items():
        if not any(name in scope for scope in parser.scopes.frames[1:]):
            parser.scopes.define(name, symbol)


def call(parser: Parser, function: Callable[..., object], args: Values, kwargs: Words) -> object:
    """A call inside a graph function."""
    if isinstance(function, GlobalVar):
        _check_call_of_kernel(parser, function, args)
    if build.is_callable_value(function):
        return build.call_function(function, args, kwargs)
    return function(*args, **kwargs)


def _check_call_of_kernel(parser: Parser, function: GlobalVar, args: Values) -> None:
    """Refuse a call of a PrimFunc without its outputs: ``R.call_tir`` is meant."""
    kernel = parser.kernels.get(function)
    if kernel is None or len(args) >= len(kernel.params):
        return
    name = function.name_hint
    raise IRValueError(
        f"call of {name}: a PrimFunc returns nothing, it writes into buffers that it is given: "
        f"expected {len(kernel.params)} arguments, got {len(args)}\n"
        f"to have its output allocated write R.call_tir(cls.{name}, (...), "
        'out_sinfo=R.Tensor(shape, "float32"))'
    )


def bare_name(parser: Parser, name: str) -> object:
    """``Tensor`` for ``R.Tensor``."""
    return _BARE.get(name)


def attribute(parser: Parser, value: object, name: str) -> object:
    """An attribute; ``relax.add`` in a script that captures the module ``relax`` is ``R.add``."""
    if value is sys.modules.get("weft.relax"):
        try:
            return getattr(value, name)
        except AttributeError:
            return getattr(sys.modules["weft.script.relax"], name)
    return getattr(value, name)


CALLS["relax"] = call
FALLBACKS["relax"] = bare_name
ATTRIBUTES["relax"] = attribute


@statement("relax", ast.Assign)
def visit_assign(parser: Parser, node: ast.Assign) -> None:
    """``lv = value``, ``n = T.int64()``, ``a, b = value``."""
    if len(node.targets) != 1:
        parser.error(node.targets[1], "one assignment has one left side: a = b = c is none")
    target = node.targets[0]
    value = parser.evaluate(node.value)
    if isinstance(target, ast.Tuple | ast.List):
        if not isinstance(value, tuple | list) or isinstance(value, TupleNode):
            value = _unpacked(value, len(target.elts))
    elif not isinstance(target, ast.Name):
        parser.error(target, "expected a name on the left side: graph values do not change")
    for name, item in parser.evaluator.match(target, value):
        parser.scopes.define(name, _assigned(parser, name, item, None))


def _unpacked(value: Iterable[object], count: int) -> list[object]:
    if isinstance(value, Expr):
        var = IRBuilder.name("gv", build.emit(value))
        return [var[index] for index in range(count)]
    return list(value)


@statement("relax", ast.AnnAssign)
def visit_ann_assign(parser: Parser, node: ast.AnnAssign) -> None:
    """``lv: R.Tensor(...) = value``."""
    if node.value is None or not isinstance(node.target, ast.Name):
        parser.error(node, "expected `name: struct info = value`")
    with parser.guard(node.annotation):
        info = as_struct_info(parser.evaluate(node.annotation))
    value = parser.evaluate(node.value)
    name = node.target.id
    parser.scopes.define(name, _assigned(parser, name, value, info))


def _assigned(parser: Parser, name: str, value: object, info: StructInfo | None) -> object:
    """What a name stands for after ``name = value``."""
    if isinstance(value, meta_var):
        return value.value
    if isinstance(value, TirVar):
        return _symbol(parser, name, value)
    if isinstance(value, build.MatchCastPair):
        var = build.emit_match_cast(value.value, info or value.struct_info)
        named = IRBuilder.name(name, var)
        frame = IRBuilder.current().find(FunctionFrame)
        if frame is not None:
            _define_symbols(parser, frame)
        return named
    if isinstance(value, bool | int | float) and not isinstance(value, Node):
        value = const(value)
    elif isinstance(value, tuple | list) and not isinstance(value, Node):
        value = build.tuple_(*value)
    if isinstance(value, Expr | GlobalVar):
        return IRBuilder.name(name, build.emit(value, info))
    return value


def _symbol(parser: Parser, name: str, value: TirVar) -> TirVar:
    """The symbol ``n`` of ``n = T.int64()`` or ``T.Var("n", "int64")``; ``"n"`` means the same."""
    if value.name and value.name != name:
        return value
    frame = IRBuilder.current().find(FunctionFrame)
    known = frame.symbols.get(name) if frame is not None else None
    if isinstance(known, TirVar) and known.dtype is value.dtype:
        return known
    symbol: TirVar = value if value.name else IRBuilder.name(name, value)
    if frame is not None:
        frame.symbols[name] = symbol
    return symbol


@statement("relax", ast.Expr)
def visit_expr(parser: Parser, node: ast.Expr) -> None:
    """A call for its effect; a docstring."""
    value = parser.evaluate(node.value)
    if value is None or isinstance(value, str):
        return
    if isinstance(value, build.MatchCastPair):
        IRBuilder.name("_", build.emit_match_cast(value.value, value.struct_info))
        return
    if not isinstance(value, Expr):
        if value is Ellipsis:
            parser.error(node, "`...` stands for code that is still missing; write bindings here")
        parser.error(node, f"expected a statement, got {type(value).__name__}")
    var = IRBuilder.name("_", build.emit(value))
    info = var.struct_info
    if not (isinstance(info, TupleStructInfo) and not info.fields):
        parser.error(node, f"this value ({info}) is not used: assign it to a variable")


@statement("relax", ast.With)
def visit_with(parser: Parser, node: ast.With) -> None:
    """``with R.dataflow():``."""
    if len(node.items) != 1:
        parser.error(node, "expected one item after `with`")
    frame = parser.evaluate(node.items[0].context_expr)
    if not isinstance(frame, IRBuilderFrame):
        parser.error(node.items[0].context_expr, "expected R.dataflow() after `with`")
    with parser.scopes.nested() as scope:
        with frame:
            parser.visit_body(node.body)
    if isinstance(frame, DataflowFrame):
        _leave_dataflow(parser, frame, scope)


def _leave_dataflow(parser: Parser, frame: DataflowFrame, scope: dict[str, object]) -> None:
    outputs = {id(old): new for old, new in frame.replaced.items()}
    for name, value in scope.items():
        if id(value) in outputs:
            parser.scopes.define(name, outputs[id(value)])
        elif isinstance(value, Var):
            parser.scopes.hidden[name] = (
                f"{name!r} is a variable of the dataflow block above; give it to R.output to use "
                "it here"
            )
        else:
            parser.scopes.define(name, value)


@statement("relax", ast.If)
def visit_if(parser: Parser, node: ast.If) -> None:
    """``if``; both branches end with a binding of the same name."""
    condition = parser.evaluate(node.test)
    if not isinstance(condition, Expr):
        parser.visit_body(node.body if condition else node.orelse)
        return
    if not node.orelse:
        parser.error(node, "a choice in a graph function needs both branches: else is missing")
    with build.If(condition) as frame:
        with parser.scopes.nested(), build.Then():
            parser.visit_body(node.body)
        with parser.scopes.nested(), build.Else():
            parser.visit_body(node.orelse)
    parser.scopes.define(frame.var_name or "gv", frame.var)


@statement("relax", ast.FunctionDef)
def visit_function(parser: Parser, node: ast.FunctionDef) -> None:
    """A local function."""
    token, options = parser.decorator(node)
    if token != "relax":
        parser.error(node, "inside of an R.function only an R.function can be defined")
    info = None
    if node.returns is not None:
        info = declare_function(parser, node, bool(options.get("pure", True)))
    var = build.local_variable(node.name, info)
    parser.scopes.define(node.name, var)
    func = parse_function(parser, node, False, bool(options.get("pure", True)), local=True)
    build.bind_local(var, func)


@statement("relax", ast.Return)
def visit_return(parser: Parser, node: ast.Return) -> None:
    """``return value``."""
    value = None if node.value is None else parser.evaluate(node.value)
    if parser.macro_depth:
        parser.returned.append(value)
        return
    build.func_ret_value(() if value is None else value)


@statement("relax", ast.Nonlocal)
@statement("relax", ast.Pass)
def visit_pass(parser: Parser, node: ast.Pass | ast.Nonlocal) -> None:
    """``pass``, and ``nonlocal x``, by which a script makes Python capture a name."""
