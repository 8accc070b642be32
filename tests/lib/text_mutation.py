"""Damaged TVMScript: changes of characters, of tokens and of the syntax tree of a valid text."""

from __future__ import annotations

import ast
import copy
import io
import random
import tokenize
from collections.abc import Callable
from typing import Any, Final

from tests.lib.mutation import CHANGES, mutated_characters

TOKENS: Final = (
    "0", "1", "-1", "2147483648", "9223372036854775808", "1e400", "1.5", "None", "True", "'x'", "T",
    "R", "I", "T.int64", "T.float32", "T.Buffer", "T.block", "T.grid", "T.serial", "T.vectorized",
    "T.parallel", "T.reads", "T.axis.spatial", "T.axis.remap", "T.init", "T.alloc_buffer",
    "T.match_buffer", "T.decl_buffer", "T.call_packed", "T.handle", "R.Tensor", "R.dataflow",
    "R.output", "R.call_tir", "R.add", "R.match_cast", "R.shape", "I.ir_module", "for", "in",
    "range", "while", "if", "else", "with", "as", "def", "class", "return", "lambda", "pass", "(",
    ")", "[", "]", "{", "}", ":", ",", ".", "=", "==", "+", "-", "*", "**", "/", "//", "%", "<<",
    ">>", "@", "|", "not", "and", "*args", "...", "yield", "await", "async", "del", "global",
    "import", "f'{i}'", "i", "j", "n", "x", "self",
)  # fmt: skip


def mutated_text(r: random.Random, text: str) -> str:
    """The text with one to three changes; it need not be Python any more.

    >>> mutated_text(random.Random(0), "x = T.int64(4)") != "x = T.int64(4)"
    True
    """
    for _ in range(r.choice(CHANGES)):
        text = r.choice(_KINDS)(r, text)
    return text


def _characters(r: random.Random, text: str) -> str:
    return mutated_characters(r, text) if r.random() < 0.9 else text[: r.randrange(len(text) + 1)]


def _tokens(r: random.Random, text: str) -> str:
    """One token left out, doubled, exchanged with another, or another in its place."""
    try:
        read = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return _characters(r, text)
    spans = [item for item in read if item.string.strip()]
    if not spans:
        return text
    chosen, other = r.choice(spans), r.choice(spans)
    new = r.choice(("", chosen.string * 2, other.string, r.choice(TOKENS), r.choice(TOKENS)))
    lines = text.splitlines(keepends=True)
    row, column = chosen.start
    end_row, end_column = chosen.end
    before = "".join(lines[: row - 1]) + lines[row - 1][:column]
    after = lines[end_row - 1][end_column:] + "".join(lines[end_row:])
    return f"{before}{new}{after}"


def _structure(r: random.Random, text: str) -> str:
    """An expression or a statement of the tree left out, doubled, wrapped or exchanged."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _characters(r, text)
    r.choice((_change_expression, _change_expression, _change_body))(r, tree)
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, RecursionError, TypeError, AttributeError):
        return text


def _change_expression(r: random.Random, tree: ast.AST) -> None:
    places = [
        (node, name, None) for node in ast.walk(tree) for name, value in ast.iter_fields(node)
        if isinstance(value, ast.expr)
    ]  # fmt: skip
    lists = [
        (node, name, at) for node in ast.walk(tree) for name, value in ast.iter_fields(node)
        if isinstance(value, list) for at, item in enumerate(value) if isinstance(item, ast.expr)
    ]  # fmt: skip
    every: list[tuple[ast.AST, str, int | None]] = [*places, *lists]
    if not every:
        return
    node, name, at = r.choice(every)
    new = _wrapped(r, _value(node, name, at))
    if r.random() < 0.5:
        new = copy.deepcopy(_value(*r.choice(every)))
    if at is None:
        setattr(node, name, new)
    elif r.random() < 0.2:
        getattr(node, name).pop(at)
    else:
        getattr(node, name)[at] = new


def _value(node: ast.AST, name: str, at: int | None) -> Any:
    value = getattr(node, name)
    return value if at is None else value[at]


def _wrapped(r: random.Random, value: Any) -> Any:
    """An expression with something around it, or a constant in its place."""
    number = ast.Constant(r.choice((0, 1, -1, 3, 2**31, 2**63, 1.5, 1e400, "x", None, True, b"x")))
    return r.choice((
        number, ast.UnaryOp(ast.USub(), value), ast.BinOp(value, ast.FloorDiv(), number),
        ast.BinOp(value, ast.Mult(), value), ast.Call(value, [], []), ast.Subscript(value, number),
        ast.Tuple([value, number], ast.Load()), ast.List([value], ast.Load()),
        ast.Call(value, [number], []), ast.Attribute(value, "dtype", ast.Load()),
        ast.Compare(value, [ast.Lt()], [number]), ast.Starred(value, ast.Load()),
        ast.IfExp(value, number, value), ast.Slice(value, number, None), ast.Set([value]),
    ))  # fmt: skip


def _change_body(r: random.Random, tree: ast.AST) -> None:
    """A statement left out, doubled, moved into another body, or another in its place."""
    bodies = [
        value for node in ast.walk(tree) for _, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    ]  # fmt: skip
    if not bodies:
        return
    body, other = r.choice(bodies), r.choice(bodies)
    at = r.randrange(len(body))
    choice = r.randrange(4)
    if choice == 0 and len(body) > 1:
        del body[at]
    elif choice == 1:
        body.insert(at, copy.deepcopy(body[at]))
    elif choice == 2:
        other_at = r.randrange(len(other))
        body[at], other[other_at] = other[other_at], body[at]
    else:
        body[at] = ast.Pass()


_KINDS: Final[tuple[Callable[[random.Random, str], str], ...]] = (
    _characters, _tokens, _tokens, _structure, _structure,
)  # fmt: skip
