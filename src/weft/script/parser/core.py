"""Parses statements: the handler is found by (dialect, class of the ast node).

``Parser`` holds the source, the scopes and the evaluator; the dialects (``tir_dialect``,
``relax_dialect``) register a function for each class of statements that they support.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from weft.ir.expr import GlobalVar
from weft.ir.global_info import GlobalInfo
from weft.script.ir_builder.base import IRBuilder
from weft.script.parser import advice
from weft.script.parser.evaluator import Evaluator, Values, Words
from weft.script.parser.mistakes import Mistake
from weft.script.parser.scope import Scopes
from weft.support.diagnostics import Source
from weft.support.dtype import DataType
from weft.tir.function import PrimFunc

Handler = Callable[["Parser", Any], None]
"""A function that parses a statement of the class for which it is registered."""
STATEMENTS: Final[dict[tuple[str, type[ast.AST]], Handler]] = {}
CALLS: Final[dict[str, Callable[[Parser, Callable[..., object], Values, Words], object]]] = {}
FALLBACKS: Final[dict[str, Callable[[Parser, str], object]]] = {}
ATTRIBUTES: Final[dict[str, Callable[[Parser, object, str], object]]] = {}
NAMES: Final = {"tir": "T.prim_func", "relax": "R.function", "ir": "I.ir_module"}


def statement(dialect: str, kind: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Register the handler of a statement class in a dialect."""

    def register(handler: Handler) -> Handler:
        STATEMENTS[dialect, kind] = handler
        return handler

    return register


class Parser:
    """One parse of one definition."""

    def __init__(
        self,
        source: Source,
        captured: Mapping[str, object],
        evaluator: Callable[[Source, Scopes], Evaluator] = Evaluator,
    ) -> None:
        self.source = source
        self.scopes = Scopes(captured)
        self.evaluator = evaluator(source, self.scopes)
        self.evaluator.call = self.call
        self.evaluator.fallback = self.fallback
        self.evaluator.attribute_of = self.attribute
        self.evaluator.advice = self.advice
        self.dialect = "ir"
        self.returned: list[object] = []
        self.macro_depth = 0
        self.module_infos: Mapping[str, Sequence[GlobalInfo]] = {}
        self.emitted: Any = None
        self.functions: dict[str, GlobalVar] = {}
        self.function_names: dict[str, str] = {}
        self.return_types: dict[GlobalVar, DataType] = {}
        self.kernels: dict[GlobalVar, PrimFunc] = {}
        self.shadowing: list[ast.AST] = []
        """Assignments in the current function whose new variable hides one of an outer scope."""
        self.mistakes: list[Mistake] = []

    @contextlib.contextmanager
    def in_dialect(self, name: str) -> Iterator[None]:
        """Use a dialect for the statements inside."""
        before, self.dialect = self.dialect, name
        try:
            yield
        finally:
            self.dialect = before

    def error(self, node: ast.AST, message: str) -> NoReturn:
        """Raise a DiagnosticError at ``node``."""
        raise self.evaluator.error(node, message)

    def guard(self, node: ast.AST) -> contextlib.AbstractContextManager[None]:
        """Errors that are raised inside get the location of ``node``."""
        return self.evaluator.placed(node)

    def parameters(self, node: ast.FunctionDef) -> list[ast.arg]:
        """The parameters of a script's function; only positional ones without default values."""
        args = node.args
        for extra in (args.vararg, args.kwarg, *args.kwonlyargs):
            if extra is not None:
                self.error(extra, "a script's function has plain parameters only")
        if args.defaults:
            self.error(args.defaults[0], "a script's parameter has no default value")
        return [*args.posonlyargs, *args.args]

    def evaluate(self, node: ast.AST) -> Any:
        """The value of an expression."""
        return self.evaluator.evaluate(node)

    def visit(self, node: ast.stmt) -> None:
        """Parse a statement."""
        handler = STATEMENTS.get((self.dialect, type(node)))
        if handler is None:
            self.error(node, f"{type(node).__name__} is not supported in {NAMES[self.dialect]}")
        if IRBuilder.is_in_scope():
            IRBuilder.current().span = self.evaluator.span(node)
        with self.guard(node):
            handler(self, node)

    def visit_body(self, nodes: list[ast.stmt]) -> None:
        """Parse statements in order."""
        for node in nodes:
            self.visit(node)

    def call(
        self, function: Callable[..., object], args: Values, kwargs: Words, node: ast.Call
    ) -> object:
        """A call in the current dialect."""
        macro = getattr(function, "expand_macro", None)
        if macro is not None:
            return macro(self, args, kwargs)
        with self.advice(function, args, node):
            return self._call(function, args, kwargs)

    @contextlib.contextmanager
    def advice(
        self, function: Callable[..., object], args: Values, node: ast.Call
    ) -> Iterator[None]:
        """Give words that help to errors of Python's and numpy's functions on expressions."""
        if self.dialect == "relax" and advice.is_silent(function):
            self._advise(function, args, node, None)
        try:
            yield
        except (TypeError, ValueError) as error:
            self._advise(function, args, node, error)
            raise

    def _advise(
        self, function: Callable[..., object], args: Values, node: ast.Call, error: Exception | None
    ) -> None:
        words = advice.instead(self.dialect, function, args)
        if words is not None:
            raise self.evaluator.error(node, words) from error

    def _call(self, function: Callable[..., object], args: Values, kwargs: Words) -> object:
        special = CALLS.get(self.dialect)
        if special is not None:
            return special(self, function, args, kwargs)
        return function(*args, **kwargs)

    def fallback(self, name: str) -> object:
        """The meaning that the dialect gives to a name that is not defined, or None."""
        special = FALLBACKS.get(self.dialect)
        return None if special is None else special(self, name)

    def attribute(self, value: object, name: str) -> object:
        """An attribute in the current dialect."""
        special = ATTRIBUTES.get(self.dialect)
        return getattr(value, name) if special is None else special(self, value, name)

    def decorator(self, node: ast.FunctionDef | ast.ClassDef) -> tuple[str, dict[str, object]]:
        """``(dialect token, options)`` of a definition's decorator."""
        for item in node.decorator_list:
            options: dict[str, object] = {}
            function: ast.expr = item
            if isinstance(item, ast.Call):
                function = item.func
                options = {
                    word.arg: self.evaluate(word.value)
                    for word in item.keywords
                    if word.arg is not None
                }
            token = getattr(self.evaluate(function), "dispatch_token", None)
            if token is not None:
                return token, options
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        raise self.evaluator.error(
            node,
            f"{kind} {node.name!r} has no decorator of TVMScript: expected @I.ir_module, "
            "@T.prim_func or @R.function",
        )
