"""``@I.ir_module``: declares the functions of a class, then parses them."""

from __future__ import annotations

import ast

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.relax.builder.module_builder import function_info
from weft.relax.expr import ExternFunc, Function
from weft.script.ir_builder.base import IRBuilder
from weft.script.ir_builder.ir import IRModuleFrame, find_module
from weft.script.parser.core import Parser, statement
from weft.script.parser.relax_dialect import declare_function, parse_function
from weft.script.parser.tir_dialect import declare_prim_func, parse_prim_func
from weft.support.errors import IRAttributeError


class ModuleProxy:
    """What the class's name and ``cls`` mean inside: ``Module.f`` is the GlobalVar of ``f``."""

    def __init__(self, name: str, functions: dict[str, GlobalVar]) -> None:
        self.name_ = name
        self.functions_ = functions

    def __getattr__(self, name: str) -> GlobalVar:
        var = self.functions_.get(name)
        if var is None:
            known = ", ".join(self.functions_)
            raise IRAttributeError(f"module {self.name_} has no function {name!r}; it has: {known}")
        return var


def parse_module(parser: Parser, node: ast.ClassDef) -> IRModule:
    """The module of a decorated class."""
    functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    with parser.scopes.nested(), IRBuilder() as builder:
        _read_function_names(parser, node)
        for item in functions:
            if item.name in parser.functions:
                parser.error(item, f"the module has two functions named {item.name!r}")
            parser.functions[item.name] = GlobalVar(_given_name(parser, item.name))
            parser.scopes.define(item.name, parser.functions[item.name])
        parser.scopes.define(node.name, ModuleProxy(node.name, parser.functions))
        frame = IRModuleFrame()
        with parser.guard(node), frame:
            for statement_ in node.body:
                if not isinstance(statement_, ast.FunctionDef):
                    parser.visit(statement_)
            parser.module_infos = frame.global_infos
            for item, options in _ordered(parser, functions):
                private = bool(options.get("private", False))
                if options["token"] == "tir":
                    kernel = parse_prim_func(parser, item, private)
                    func: BaseFunc = kernel
                    parser.kernels[parser.functions[item.name]] = kernel
                else:
                    pure = bool(options.get("pure", True))
                    func = _named(parser, item, parse_function(parser, item, private, pure))
                var = parser.functions[item.name]
                var.struct_info = function_info(func)
                frame.functions[var] = func
            if parser.emitted is not None:
                frame.functions.update(parser.emitted.functions)
            frame.order = [parser.functions[item.name] for item in functions]
        module: IRModule = builder.get()
    return module


def _read_function_names(parser: Parser, node: ast.ClassDef) -> None:
    """Read a call of ``I.function_names`` first, since functions are declared before it runs."""
    for item in node.body:
        call = item.value if isinstance(item, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr == "function_names":
                parser.function_names.update(parser.evaluate(call))


def _given_name(parser: Parser, name: str) -> str:
    return parser.function_names.get(name, name)


def _named(parser: Parser, item: ast.FunctionDef, func: Function) -> Function:
    """The function with the name, also as its symbol, that ``I.function_names`` gives it."""
    name = _given_name(parser, item.name)
    if name == item.name or func.attrs.get("global_symbol") != item.name:
        return func
    return func.with_attr("global_symbol", name)


def _ordered(
    parser: Parser, functions: list[ast.FunctionDef]
) -> list[tuple[ast.FunctionDef, dict[str, object]]]:
    """PrimFuncs first; a graph function comes after those whose result type it needs."""
    prim, graph = [], {}
    for item in functions:
        token, options = parser.decorator(item)
        options = {**options, "token": token}
        if token == "tir":
            declare_prim_func(parser, item, parser.functions[item.name])
            prim.append((item, options))
            continue
        if token != "relax":
            parser.error(item, "expected @T.prim_func or @R.function")
        graph[item.name] = (item, options)
        if item.returns is not None:
            parser.functions[item.name].struct_info = declare_function(
                parser, item, bool(options.get("pure", True))
            )
    return [*prim, *_by_need(graph)]


def _by_need(
    graph: dict[str, tuple[ast.FunctionDef, dict[str, object]]],
) -> list[tuple[ast.FunctionDef, dict[str, object]]]:
    ordered: dict[str, tuple[ast.FunctionDef, dict[str, object]]] = {}
    entered: set[str] = set()

    def add(name: str) -> None:
        if name in entered:
            return
        entered.add(name)
        item = graph[name][0]
        for part in ast.walk(item):
            used = getattr(part, "id", getattr(part, "attr", None))
            if used in graph and used != name and graph[used][0].returns is None:
                add(used)
        ordered[name] = graph[name]

    for name in graph:
        add(name)
    return list(ordered.values())


@statement("ir", ast.Expr)
def visit_expr(parser: Parser, node: ast.Expr) -> None:
    """``I.module_attrs(...)`` and the like; a docstring."""
    parser.evaluate(node.value)


@statement("ir", ast.Pass)
def visit_pass(parser: Parser, node: ast.Pass) -> None:
    """``pass``."""


def _external(parser: Parser, name: str, function: ExternFunc) -> GlobalVar:
    var = parser.functions[name] = GlobalVar(_given_name(parser, name))
    var.struct_info = function.struct_info
    find_module("R.ExternFunc").functions[var] = function
    return var


@statement("ir", ast.Assign)
def visit_assign(parser: Parser, node: ast.Assign) -> None:
    """A Python value that the functions may use; an ``R.ExternFunc`` becomes a function."""
    value = parser.evaluate(node.value)
    for target in node.targets:
        for name, item in parser.evaluator.match(target, value):
            if isinstance(item, ExternFunc):
                item = _external(parser, name, item)
            parser.scopes.define(name, item)
