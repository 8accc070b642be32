"""Finds the text and the ``ast`` node of a decorated function or class.

The whole file (or notebook cell) is parsed, so that lines and columns are those of the user; the
node is found by the line at which the definition starts according to Python.
"""

from __future__ import annotations

import ast
import linecache
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Final

from weft.support.diagnostics import Source
from weft.support.errors import DiagnosticError

LONG_TEXT: Final = 50_000
STACK_BYTES: Final = 1 << 29

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class _Parsed:
    text: str
    source: Source
    tree: ast.Module


_FILES: dict[str, _Parsed] = {}


def _read(filename: str, module_globals: Mapping[str, object]) -> _Parsed | None:
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, dict(module_globals)))
    if not text.strip():
        return None
    known = _FILES.get(filename)
    if known is not None and known.text == text:
        return known
    try:
        tree = parse_text(text)
    except SyntaxError:
        return None
    if len(_FILES) > 64:
        _FILES.clear()
    parsed = _FILES[filename] = _Parsed(text, Source.from_text(filename, text), tree)
    return parsed


def parse_text(text: str) -> ast.Module:
    """``ast.parse``; a long text is parsed in a thread of its own with a large stack.

    Python's parser recurses in C as deep as expressions are nested; if they are nested too deep,
    that is a SyntaxError here.
    """
    if len(text) < LONG_TEXT:
        return _parse(text)
    results: list[ast.Module | SyntaxError] = []

    def work() -> None:
        try:
            results.append(_parse(text))
        except SyntaxError as error:
            results.append(error)

    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if isinstance(results[0], SyntaxError):
        raise results[0]
    return results[0]


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (MemoryError, RecursionError):
        raise SyntaxError("an expression is nested too deep for Python's parser") from None


def find_function(func: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """Source and node of a function."""
    code = func.__code__
    place = _find(code.co_filename, func.__globals__, code.co_name, code.co_firstlineno)
    if not isinstance(place[1], ast.FunctionDef):
        raise no_source(code.co_name)
    return place[0], place[1]


def find_class(cls: type, frame: FrameType) -> tuple[Source, ast.ClassDef]:
    """Source and node of a class whose decorator runs in ``frame``."""
    code = frame.f_code
    place = _find(code.co_filename, frame.f_globals, cls.__name__, frame.f_lineno)
    if not isinstance(place[1], ast.ClassDef):
        raise no_source(cls.__name__)
    return place[0], place[1]


def _find(
    filename: str, module_globals: Mapping[str, object], name: str, line: int
) -> tuple[Source, Definition]:
    parsed = _read(filename, module_globals)
    if parsed is None:
        raise no_source(name)
    for node in ast.walk(parsed.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            first = min([node.lineno, *[item.lineno for item in node.decorator_list]])
            if first <= line <= node.lineno:
                return parsed.source, node
    raise no_source(name)


def no_source(name: str) -> DiagnosticError:
    """The error for a definition whose text Python does not store."""
    return DiagnosticError(
        f"{name}: Python keeps no source text here (the plain REPL, exec), so there is no script "
        "to parse\n"
        "put it into a file or a notebook, or pass the text itself:\n"
        "    weft.script.from_source(text)"
    )


def is_class_body(frame: FrameType) -> bool:
    """Whether ``frame`` runs the body of a class."""
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals


def in_module_class(frame: FrameType) -> bool:
    """Whether ``frame`` runs the body of a class that ``ir_module`` or ``rewriter`` will parse."""
    if not is_class_body(frame):
        return False
    code: CodeType = frame.f_code
    parsed = _read(code.co_filename, frame.f_globals)
    if parsed is None:
        raise no_source(code.co_name)
    for node in ast.walk(parsed.tree):
        if isinstance(node, ast.ClassDef) and node.name == code.co_name:
            first = min([node.lineno, *[item.lineno for item in node.decorator_list]])
            if first <= code.co_firstlineno <= node.lineno:
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                return "ir_module" in decorators or "rewriter" in decorators
    return False


def captured_names(frame: FrameType, func: FunctionType | None = None) -> dict[str, object]:
    """The names that a definition may use: globals, locals of enclosing functions, its closure.

    The frame's locals are needed for names that only annotations use: a closure does not hold them.
    """
    locals_around: list[Mapping[str, object]] = []
    current: FrameType | None = frame
    while current is not None:
        if current.f_locals is current.f_globals:
            break
        locals_around.append(current.f_locals)
        if not is_class_body(current):
            break
        current = current.f_back
    names: dict[str, object] = dict(func.__globals__ if func is not None else frame.f_globals)
    for mapping in reversed(locals_around):
        names.update(mapping)
    if func is not None:
        names.update(closure_of(func))
    return names


def closure_of(func: FunctionType) -> dict[str, object]:
    """The closure variables that have a value already; a class has none inside of itself."""
    names: dict[str, object] = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def closure_of_class(cls: type) -> dict[str, object]:
    """The closure variables of a class's functions."""
    names: dict[str, object] = {}
    for member in vars(cls).values():
        if isinstance(member, FunctionType):
            names.update(closure_of(member))
    return names
