"""Checks of data in a model's code: they pass while torch.export traces the model.

``assert mask.all()`` and ``if bad.any(): raise ValueError(...)`` need values of tensors, which a
trace does not have. Every distribution of torch.distributions has such checks of its parameters.
But a statement that only raises, or only warns, computes nothing: a trace follows what the model
does where the check passes. (torch.compile does so, too, for ``assert``.) As for the checks that
torch.export records itself, a compiled model does not make them.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import torch
from torch import fx
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from weft.relax.frontend.torch.known_numbers import READS

_TORCH: Final = Path(torch.__file__).parent
_STANDARD: Final = Path(contextlib.__file__).parent
_LIKE_MODELS: Final = (_TORCH / "distributions", _TORCH / "nn")
"""Folders of torch whose code is a model's own."""
_WARNINGS: Final = frozenset({"debug", "info", "warn", "warn_once", "warning", "warning_once"})
"""Names of functions that tell the user something."""
_ASSERTIONS: Final = (
    torch.ops.aten._assert_scalar.default, torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
)  # fmt: skip
"""What torch adds to a graph for each number that a trace reads."""
Span = tuple[tuple[int, int], tuple[int, int]]
"""Where a piece of source begins and ends: lines from 1, and offsets in UTF-8."""


@contextmanager
def passed_checks() -> Iterator[list[str]]:
    """Within, a condition on data that decides only whether to raise or to warn decides not to.

    Yields a list, to which each such condition is added as torch writes it. This changes a class
    of torch for the whole process: hold ``EXPORTING``.
    """
    original = SymNode.guard_bool
    passed: list[str] = []

    def guard_bool(self: SymNode, file: str, line: int) -> bool:
        try:
            return bool(original(self, file, line))
        except GuardOnDataDependentSymNode:
            outcome = _outcome_of_check(sys._getframe(1))
            if outcome is None:
                raise
            passed.append(str(self))
            return outcome

    SymNode.guard_bool = guard_bool
    try:
        yield passed
    finally:
        SymNode.guard_bool = original


def erase_unused_reads(program: torch.export.ExportedProgram) -> None:
    """Take reads of numbers, of which nothing but assertions is computed, out of a program."""
    graph = program.graph
    for read in [node for node in graph.nodes if node.target in READS]:
        follow = _following(read)
        ends = [node for node in follow if not node.users]
        if all(node is read or node.target in _ASSERTIONS for node in ends):
            for node in reversed(follow):
                graph.erase_node(node)
    program.graph_module.recompile()


def _following(node: fx.Node) -> list[fx.Node]:
    """A node and what is computed of it, in the graph's order."""
    reached = {node}
    for later in node.graph.nodes:
        if reached & set(later.all_input_nodes):
            reached.add(later)
    return [item for item in node.graph.nodes if item in reached]


def _outcome_of_check(frame: FrameType | None) -> bool | None:
    """With which value the model goes on, of a condition that it is about to test; else None."""
    while frame is not None and _is_machinery(Path(frame.f_code.co_filename)):
        frame = frame.f_back
    span = None if frame is None else _tested_span(frame)
    if frame is None or span is None:
        return None
    for test, wanted in _checks_of(frame.f_code.co_filename):
        if _holds(_span(test), span):
            return _wanted(test, wanted, span)
    return None


def _is_machinery(file: Path) -> bool:
    """Whether a file is of what calls a model's code, or is called by it for values of tensors."""
    if any(map(file.is_relative_to, _LIKE_MODELS)):
        return False
    return file.parent == _STANDARD or file.is_relative_to(_TORCH)


def _tested_span(frame: FrameType) -> Span | None:
    """Where the expression stands whose truth a frame asks for; None where it asks for none.

    Bytecode has the place of what pushed the value before it has that of the test.
    """
    place = frame.f_lasti // 2
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    positions = list(frame.f_code.co_positions())
    if name.startswith("CALL"):
        position = positions[place]
    elif name.startswith(("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT")):
        position = positions[place - 1]
    else:
        return None
    line, end_line, column, end_column = position
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return (line, column), (end_line, end_column)


@functools.lru_cache(maxsize=64)
def _checks_of(file: str) -> tuple[tuple[ast.expr, bool], ...]:
    """The conditions of a file's checks, each with the value with which it passes."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # code that another parser wrote
        return ()
    checks = []
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test):
                checks.append((test, True))
            case ast.If(test, body, orelse):
                if _is_refusal(body) and not _is_refusal(orelse):
                    checks.append((test, False))
                elif _is_refusal(orelse) and not _is_refusal(body):
                    checks.append((test, True))
    return tuple(checks)


def _is_refusal(body: list[ast.stmt]) -> bool:
    """Whether statements end with an exception, or do nothing but warn."""
    if body and isinstance(body[-1], ast.Raise):
        return True
    return bool(body) and all(map(_is_warning, body))


def _is_warning(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in _WARNINGS
    return False


def _wanted(test: ast.expr, wanted: bool, span: Span) -> bool | None:
    """The value of the part of a condition at ``span`` with which the whole is ``wanted``.

    An ``or`` is true if the part is, and an ``and`` false: the parts behind it are not asked.
    """
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return _wanted(operand, not wanted, span)
        case ast.BoolOp(values=parts):
            for part in parts:
                if _holds(_span(part), span):
                    return _wanted(part, wanted, span)
            return None
        case ast.Call(ast.Name("bool"), [operand]) if _span(test) != span:
            return _wanted(operand, wanted, span)
    return wanted if _span(test) == span else None


def _span(node: ast.expr) -> Span:
    end_line, end_column = node.end_lineno, node.end_col_offset
    assert end_line is not None
    assert end_column is not None
    return (node.lineno, node.col_offset), (end_line, end_column)


def _holds(whole: Span, part: Span) -> bool:
    return whole[0] <= part[0] and part[1] <= whole[1]
