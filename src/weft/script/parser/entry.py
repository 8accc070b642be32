"""The entries of the parser: decorators, which get definitions, and ``from_source``, for texts."""

from __future__ import annotations

import ast
import functools
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar

from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.relax.analysis.well_formed import find_problem
from weft.relax.expr import Function
from weft.script import metadata
from weft.script.parser.core import Parser
from weft.script.parser.mistakes import warn
from weft.script.parser.module_dialect import parse_module
from weft.script.parser.relax_dialect import parse_function
from weft.script.parser.source import (
    captured_names,
    closure_of_class,
    find_class,
    find_function,
    in_module_class,
    parse_text,
)
from weft.script.parser.text_evaluator import TextEvaluator, attribute_of
from weft.script.parser.text_names import namespaces, of_module
from weft.script.parser.tir_dialect import parse_prim_func
from weft.support.config import environment_flag
from weft.support.diagnostics import Source, render
from weft.support.errors import DiagnosticError, IRTypeError, wrong_type
from weft.support.public_entry import public_entry
from weft.support.recursion import deep_recursion
from weft.support.span import SourceName, Span
from weft.tir.analysis.verify_well_formed import IllFormedError, verify_well_formed
from weft.tir.function import PrimFunc

Program = IRModule | BaseFunc
"""What a script defines."""

P = ParamSpec("P")
R = TypeVar("R")


def _short_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate an entry: the traceback of a DiagnosticError does not show the parser's frames.

    With WEFT_FULL_TRACEBACK in the environment it is complete.
    """

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DiagnosticError as error:
            if environment_flag("WEFT_FULL_TRACEBACK"):
                raise
            raise error.with_traceback(None) from None

    return entry


def parse(
    program: object, extra_vars: Mapping[str, object] | None = None, check_well_formed: bool = True
) -> Any:
    """The IRModule or function of a text, a function or a class (TVM's name for from_source)."""
    return _parse_program(program, extra_vars, check_well_formed, sys._getframe(1))


def from_source(
    program: object, extra_vars: Mapping[str, object] | None = None, check_well_formed: bool = True
) -> Any:
    """The IRModule or function of a text, or of a Python function or class that was not decorated.

    ``extra_vars`` are names the text may use beside T, R, I and its own. A text of several
    functions gives an IRModule of them.
    """
    return _parse_program(program, extra_vars, check_well_formed, sys._getframe(1))


@_short_traceback
@public_entry("from_source")
@deep_recursion
def _parse_program(
    program: object,
    extra_vars: Mapping[str, object] | None,
    check_well_formed: bool,
    frame: FrameType,
) -> Program:
    if isinstance(program, BaseFunc | IRModule):
        return program
    if isinstance(program, FunctionType | type):
        parsed: Program = parse_definition(program, frame, None, {}, check_well_formed, extra_vars)
        return parsed
    if not isinstance(program, str):
        raise wrong_type("from_source: expected a text, a function or a class", program)
    if extra_vars is not None and not isinstance(extra_vars, Mapping):
        raise wrong_type("from_source: extra_vars: expected a dict of names", extra_vars)
    text = program if program[:1].strip() else textwrap.dedent(program)
    _check_characters(text)
    source = Source.from_text("<str>", text)
    try:
        tree = parse_text(text)
    except SyntaxError as error:
        raise DiagnosticError(render(f"{error.msg}", source, _syntax_span(error))) from error
    own = {name: of_module(value) for name, value in (extra_vars or {}).items()}
    evaluator = functools.partial(TextEvaluator, own=own)
    parser = Parser(source, {**namespaces(), **own}, evaluator)
    try:
        return _parse_text(parser, tree, check_well_formed)
    except MemoryError as error:
        message = "there is not enough memory for what the text says"
        raise DiagnosticError(render(message, source, None)) from error


def _check_characters(text: str) -> None:
    """Refuse lone surrogates, which cannot be encoded in a file."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        shown = Source.from_text("<str>", text.encode(errors="backslashreplace").decode())
        place = Span(SourceName("<str>"), line, line, column, column + 6)
        raise DiagnosticError(
            render("the text holds a half character (a lone surrogate)", shown, place)
        ) from None


def _syntax_span(error: SyntaxError) -> Span:
    line, column = error.lineno or 1, error.offset or 1
    return Span(SourceName("<str>"), line, line, column, column + 1)


def _parse_text(parser: Parser, tree: ast.Module, check: bool) -> Program:
    definitions: list[ast.FunctionDef | ast.ClassDef] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions.append(node)
        else:
            _outside(parser, node)
    if not definitions:
        raise DiagnosticError(render("the text has no function or class", parser.source, None))
    if len(definitions) == 1:
        return _one(parser, definitions[0], check)
    module = IRModule()
    for node in definitions:
        if isinstance(node, ast.ClassDef):
            parser.error(node, "a text has either one class or functions, not both")
        function = _one(parser, node, check)
        assert isinstance(function, BaseFunc)  # a class cannot be one of several definitions
        module[node.name] = function
    return module


def _outside(parser: Parser, node: ast.stmt) -> None:
    """Handle what is around the definitions of a text: imports, assignments, docstrings."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        _import(parser, node)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        with parser.guard(node):
            text = _metadata_text(node)
            value = parser.evaluate(node.value) if text is None else metadata.from_json(text)
        for name, item in parser.evaluator.match(node.targets[0], value):
            parser.scopes.define(name, item)
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        parser.error(node, "beside functions and classes a text has imports and assignments only")


def _metadata_text(node: ast.Assign) -> str | None:
    """The text of ``metadata = tvm.ir.load_json(text)``, which ``show_meta=True`` prints."""
    call = node.value
    if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "load_json":
        return None
    text = getattr(call.args[0], "value", None) if len(call.args) == 1 else None
    return text if isinstance(text, str) else None


def _import(parser: Parser, node: ast.Import | ast.ImportFrom) -> None:
    module = getattr(node, "module", None) or ""
    for alias in node.names:
        path = f"{module}.{alias.name}" if module else alias.name
        root, _, rest = path.partition(".")
        if root == "__future__":
            continue
        if root not in ("tvm", "weft") or getattr(node, "level", None):
            parser.error(node, f"a text imports from weft (or tvm) only, not {path}")
        value: object = namespaces()["weft"]
        if module or alias.asname:
            with parser.guard(node):
                for part in rest.split(".") if rest else ():
                    value = attribute_of(value, part)
        name = alias.asname or (alias.name if module else root)
        parser.scopes.define(name, value)


def _one(parser: Parser, node: ast.FunctionDef | ast.ClassDef, check: bool) -> Program:
    token, options = parser.decorator(node)
    program = _dispatch(parser, node, token, options)
    return verified(program, check and bool(options.get("check_well_formed", True)), parser)


def _dispatch(
    parser: Parser, node: ast.FunctionDef | ast.ClassDef, token: str, options: Mapping[str, object]
) -> Program:
    private = bool(options.get("private", False))
    if isinstance(node, ast.ClassDef):
        if token != "ir":
            parser.error(node, "a class needs the decorator @I.ir_module")
        return parse_module(parser, node)
    if token == "tir":
        return parse_prim_func(parser, node, private)
    if token == "relax":
        return parse_function(parser, node, private, bool(options.get("pure", True)))
    raise parser.evaluator.error(node, "a function needs the decorator @T.prim_func or @R.function")


@_short_traceback
@public_entry("the parser")
@deep_recursion
def parse_definition(
    definition: FunctionType | type,
    frame: FrameType,
    token: str | None,
    options: Mapping[str, object],
    check_well_formed: bool = True,
    extra_vars: Mapping[str, object] | None = None,
) -> Any:
    """Parse the definition that a decorator got; ``frame`` is where the decorator is called."""
    node: ast.FunctionDef | ast.ClassDef
    if isinstance(definition, type):
        source, node = find_class(definition, frame)
        captured = {**captured_names(frame), **closure_of_class(definition)}
    else:
        source, node = find_function(definition)
        captured = captured_names(frame, definition)
    parser = Parser(source, {**captured, **(extra_vars or {})})
    if token is None:
        token, options = parser.decorator(node)
    program = _dispatch(parser, node, token, options)
    return verified(program, check_well_formed, parser)


def decorate(
    definition: object, token: str, options: Mapping[str, object], check_well_formed: bool
) -> Any:
    """What ``@T.prim_func`` and ``@R.function`` do.

    Inside a class that ``@I.ir_module`` will parse as a whole, the function stays as it is.
    """
    if not isinstance(definition, FunctionType):
        raise IRTypeError(
            f"expected a function to decorate, got {type(definition).__name__}: {definition!r}"
        )
    frame = sys._getframe(2)
    if in_module_class(frame):
        return definition
    return parse_definition(definition, frame, token, options, check_well_formed)


def verified(program: Program, check: bool, parser: Parser) -> Program:
    """``program``, after the well-formedness checks of both IRs and warnings, if ``check``."""
    if not check:
        return program
    source = parser.source
    functions = list(program.functions.values()) if isinstance(program, IRModule) else [program]
    for func in functions:
        if isinstance(func, PrimFunc):
            try:
                verify_well_formed(func)
            except IllFormedError as error:
                raise _ill_formed(str(error), source, error.span or func.span) from error
    if isinstance(program, IRModule | Function) and any(
        isinstance(func, Function) for func in functions
    ):
        problem = find_problem(program)
        if problem is not None:
            where = program if isinstance(program, Function) else functions[0]
            if isinstance(program, IRModule) and problem.partition(":")[0] in program:
                where = program[problem.partition(":")[0]]
            raise _ill_formed(f"{problem}", source, where.span)
    warn(parser.mistakes)
    return program


def _ill_formed(message: str, source: Source, span: Span | None) -> DiagnosticError:
    hint = "; check_well_formed=False parses it all the same"
    return DiagnosticError(render(f"{message}{hint}", source, span))
