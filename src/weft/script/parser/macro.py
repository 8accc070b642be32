"""Macros: functions whose statements are parsed again at each call, in the caller's function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import NoReturn

from weft.script.parser.core import Parser
from weft.script.parser.evaluator import Values, Words
from weft.script.parser.source import captured_names, find_function
from weft.support.errors import IRTypeError, IRValueError


class ScriptMacro:
    """A macro; if it is ``hygienic``, names mean what they mean where it is defined."""

    def __init__(
        self, dialect: str, function: FunctionType, hygienic: bool, names: Mapping[str, object]
    ) -> None:
        self.dialect, self.function, self.hygienic = dialect, function, hygienic
        self.names = names
        self.source, self.node = find_function(function)
        self.signature = inspect.signature(function)
        self.__name__ = function.__name__

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise IRValueError(f"macro {self.__name__!r} can only be called inside a script")

    def __get__(self, owner: object, kind: type | None = None) -> ScriptMacro | _BoundMacro:
        return self if owner is None else _BoundMacro(self, owner)

    def expand_macro(self, parser: Parser, args: Values, kwargs: Words) -> object:
        """Run the macro's statements in the caller's function."""
        if parser.dialect != self.dialect:
            raise IRTypeError(f"macro {self.__name__!r} is not one of this kind of function")
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        names = self.names if self.hygienic else {**self.names, **_visible(parser)}
        inner = Parser(self.source, names)
        inner.dialect = self.dialect
        inner.macro_depth = parser.macro_depth + 1
        if inner.macro_depth > 100:
            raise IRValueError(f"macro {self.__name__!r} expands itself without end")
        for name, value in bound.arguments.items():
            inner.scopes.define(name, value)
        inner.visit_body(self.node.body)
        parser.mistakes += inner.mistakes
        return inner.returned[0] if inner.returned else None


class _BoundMacro:
    """A macro that is a method, with its object."""

    def __init__(self, macro: ScriptMacro, owner: object) -> None:
        self.macro, self.owner, self.__name__ = macro, owner, macro.__name__

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        self.macro(self.owner, *args, **kwargs)

    def expand_macro(self, parser: Parser, args: Values, kwargs: Words) -> object:
        """Run the macro's statements with the object as first argument."""
        return self.macro.expand_macro(parser, [self.owner, *args], kwargs)


def _visible(parser: Parser) -> dict[str, object]:
    names = dict(parser.scopes.captured)
    for frame in parser.scopes.frames:
        names.update(frame)
    return names


def make_macro(
    dialect: str, args: tuple[object, ...], hygienic: bool
) -> ScriptMacro | Callable[[FunctionType], ScriptMacro]:
    """What ``@T.macro`` and ``@R.macro`` return, with and without arguments."""
    if len(args) > 1:
        raise IRTypeError(f"macro: expected one function, got {len(args)} arguments")
    if args:
        return _macro(dialect, args[0], hygienic, sys._getframe(2))

    def apply(function: object) -> ScriptMacro:
        return _macro(dialect, function, hygienic, sys._getframe(1))

    return apply


def _macro(dialect: str, function: object, hygienic: bool, frame: FrameType) -> ScriptMacro:
    """The macro of a function that is decorated in ``frame``."""
    if not isinstance(function, FunctionType):
        prefix = "T" if dialect == "tir" else "R"
        raise IRValueError(
            f"macro: expected a function, got {function!r}; write @{prefix}.macro(hygienic=...)"
        )
    return ScriptMacro(dialect, function, hygienic, captured_names(frame, function))
