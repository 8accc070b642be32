"""Extents: integer arithmetic over symbols, as compiled functions and files say their sizes.

An extent is a number or a text, ``n``, ``n * 4``, ``max(n // 2, 1)``, in Python's spelling: it
stands in messages and in JSON. Texts may come from a file. So each is parsed into a tree of the
operations below, and what is no such tree is refused. All that compute with extents do it through
this module: ``evaluate`` gives the number, ``python_text`` a part of a generated Python function,
and ``weft.runtime.export.c_text`` prints the tree as C.

Numbers have no width. ``//`` and ``%`` round down, ``x if c else y`` computes one side.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Final

from weft.runtime.faults import DivisionFault
from weft.support.errors import IRTypeError, IRValueError

Extent = int | str
"""A number, or integer arithmetic over symbols (``n``, ``n*4``, ``n//2 + 1``)."""

FUNCTIONS: Final = {"min": min, "max": max, "abs": abs}
"""The functions that an extent may call."""
_INFIX: Final[dict[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Eq: "==",
    ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
# no line end, comment or quote: the text is written into one line of a generated function
_CHARACTERS: Final = re.compile(r"[\w +\-*/%<>=!(),]*", re.ASCII)
_KNOWN: Final[dict[str, object]] = {"__builtins__": {}, **FUNCTIONS}


@dataclass(frozen=True)
class Operation:
    """An operation on extents.

    ``name`` is an infix sign (``+ - * // % == != < <= > >=``), ``neg``, ``not``, a name of
    ``FUNCTIONS``, or ``if`` with the operands condition, value if it holds, value if it does not.
    """

    name: str
    operands: tuple[Tree, ...]


Tree = int | str | Operation
"""A parsed extent: a number, a symbol, or an operation."""


@lru_cache(maxsize=4096)
def parse(extent: Extent) -> Tree:
    """The tree of an extent.

    >>> parse("n // 2 + 1")
    Operation(name='+', operands=(Operation(name='//', operands=('n', 2)), 1))

    Raises:
        IRTypeError: the text is no integer arithmetic over symbols.
    """
    if isinstance(extent, int):
        return int(extent)
    if not isinstance(extent, str) or not _CHARACTERS.fullmatch(extent):
        raise _refused(extent)
    try:
        return _tree(ast.parse(extent, mode="eval").body, extent)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise IRTypeError(f"expected a Python integer expression, got {extent!r}") from error


def _refused(extent: object) -> IRTypeError:
    return IRTypeError(f"expected integer arithmetic over names in an extent, got {extent!r}")


def _tree(node: ast.AST, extent: str) -> Tree:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
        return node.id
    name, operands = _parts(node)
    if not name:
        raise _refused(extent)
    return Operation(name, tuple([_tree(operand, extent) for operand in operands]))


def _parts(node: ast.AST) -> tuple[str, list[ast.expr]]:
    """The name of an operation and its operands; no name for what is none."""
    if isinstance(node, ast.BinOp):
        return _INFIX.get(type(node.op), ""), [node.left, node.right]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _INFIX.get(type(node.ops[0]), ""), [node.left, node.comparators[0]]
    if isinstance(node, ast.UnaryOp):
        word = {ast.USub: "neg", ast.Not: "not"}.get(type(node.op), "")
        return word, [node.operand]
    if isinstance(node, ast.IfExp):
        return "if", [node.test, node.body, node.orelse]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        fits = len(node.args) == 1 if node.func.id == "abs" else len(node.args) > 1
        return node.func.id if node.func.id in FUNCTIONS and fits else "", node.args
    return "", []


@lru_cache(maxsize=4096)
def names_in(extent: Extent) -> frozenset[str]:
    """The symbols of an extent.

    >>> sorted(names_in("max(n * m, 1)"))
    ['m', 'n']
    """
    return _names(parse(extent))


def _names(tree: Tree) -> frozenset[str]:
    if isinstance(tree, Operation):
        return frozenset().union(*[_names(operand) for operand in tree.operands])
    return frozenset([tree]) if isinstance(tree, str) else frozenset()


def python_text(extent: Extent, rename: Callable[[str], str] = str) -> str:
    """The extent as a Python expression, one operand wherever it stands.

    >>> python_text("n // 2 + 1", lambda name: f"v_{name}")
    '((v_n // 2) + 1)'
    """
    return _python(parse(extent), rename)


def _python(tree: Tree, rename: Callable[[str], str]) -> str:
    if isinstance(tree, int):
        return str(tree) if tree >= 0 else f"({tree})"
    if isinstance(tree, str):
        return rename(tree)
    texts = [_python(operand, rename) for operand in tree.operands]
    if tree.name == "if":
        return f"({texts[1]} if {texts[0]} else {texts[2]})"
    if tree.name in ("neg", "not"):
        return f"({'-' if tree.name == 'neg' else 'not '}{texts[0]})"
    if tree.name in FUNCTIONS:
        return f"{tree.name}({', '.join(texts)})"
    return f"({texts[0]} {tree.name} {texts[1]})"


@lru_cache(maxsize=4096)
def _code(extent: str) -> CodeType:
    return compile(python_text(extent), "<extent>", "eval")


def evaluate(extent: Extent, symbols: Mapping[str, int]) -> int:
    """The value of an extent.

    >>> evaluate("n // 2 + 1", {"n": 7})
    4

    Raises:
        IRValueError: a symbol has no value.
        DivisionFault: a divisor is 0.
    """
    if isinstance(extent, int):
        return extent
    known = symbols.get(extent)
    if known is not None:
        return known
    try:
        return int(eval(_code(extent), _KNOWN, symbols))  # noqa: S307 - printed from a tree
    except NameError as error:
        raise IRValueError(f"the extent {extent} uses a symbol without a value: {error}") from error
    except ZeroDivisionError:
        values = ", ".join([f"{name}={symbols[name]}" for name in sorted(names_in(extent))])
        raise DivisionFault(f"the extent {extent} divides by 0, with {values}") from None


def is_within(value: int, low: int | None, high: int | None) -> bool:
    """Whether a value is in a range, of which None leaves an end open."""
    return (low is None or low <= value) and (high is None or value <= high)


def may_divide(extents: Iterable[Extent]) -> bool:
    """Whether some extent is, or has in it, a division."""
    return any("/" in str(extent) or "%" in str(extent) for extent in extents)


def evaluator(
    extents: tuple[Extent, ...], symbols: tuple[str, ...]
) -> Callable[..., tuple[int, ...]]:
    """A function of the symbols' values, in their order, that gives the values of all extents."""
    texts = "".join([f"{python_text(extent)}, " for extent in extents])
    code = compile(f"lambda {', '.join(symbols)}: ({texts})", "<extents>", "eval")
    function: Callable[..., tuple[int, ...]] = eval(code, dict(_KNOWN))  # noqa: S307 - as above
    return function
