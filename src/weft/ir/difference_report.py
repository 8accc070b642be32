"""The message of ``assert_structural_equal``: both paths, and both places underlined.

The printer (slot ``text``) prints the programs. Not every node can be underlined in the text, so
the nodes on the path are tried from the innermost outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.node import Node
from weft.support import slots
from weft.support.errors import IRTypeError
from weft.support.object_path import ObjectPath

_TRIES: Final = 4
"""How many nodes of a path are tried before the report leaves out the text."""
_WIDTH: Final = 60


def difference_report(
    roots: Sequence[object], paths: Sequence[ObjectPath], values: Sequence[object], reason: str
) -> str:
    """The message of a mismatch; each argument but the last holds the left and the right one."""
    lines = []
    names = ("caused by lhs", "and rhs")
    for name, root, path, value in zip(names, roots, paths, values, strict=True):
        lines.append(f"{name} at {path}: {_short(value)}")
        lines += _excerpt(root, path)
    return "StructuralEqual check failed, " + "\n".join([*lines, reason])


def _short(value: object) -> str:
    """A value in one line; statements by the name of their class."""
    if isinstance(value, Node) and not isinstance(value, PrimExpr):
        kind = type(value).__name__
        name = getattr(value, "name_hint", "") or getattr(value, "name", "")
        return f"{kind} {name}" if isinstance(name, str) and name else kind
    try:
        text = str(slots.text.get().to_repr(value)) if isinstance(value, Node) else repr(value)
    except ModuleNotFoundError:
        text = f"<{type(value).__name__}>"
    line, _, rest = text.strip().partition("\n")
    return f"{line[:_WIDTH]}..." if rest or len(line) > _WIDTH else line


def _excerpt(root: object, path: ObjectPath) -> list[str]:
    """The line of the place, underlined, and the line before it."""
    nodes = [part for part in path.resolve(root) if isinstance(part, Node)]
    if not nodes or nodes[0] is not root:
        return []
    inner = nodes[:0:-1][:_TRIES]  # innermost first, without the root: it is the whole text
    for number, node in enumerate(inner):
        lines, marks = _marked(nodes[0], node)
        if not marks:
            continue
        if _is_used_often(node):
            marks = _within(marks, _marks_of_any(nodes[0], inner[number + 1 :]))
        place = min(marks)
        before = [lines[place - 1]] if place and lines[place - 1].strip() else []
        return [*before, lines[place], marks[place]]
    return []


def _within(marks: dict[int, str], around: dict[int, str]) -> dict[int, str]:
    """The marks that lie inside those of the enclosing node; all of them if none does."""
    kept = {}
    for line in marks.keys() & around.keys():
        pairs = zip(marks[line], around[line].ljust(len(marks[line])), strict=False)
        text = "".join([mine if its == "^" else " " for mine, its in pairs]).rstrip()
        if text:
            kept[line] = text
    return kept or marks


def _is_used_often(node: Node) -> bool:
    """Whether the text names a node at several places: a variable, a buffer."""
    return hasattr(node, "name") or hasattr(node, "name_hint")


def _marks_of_any(root: Node, nodes: Sequence[Node]) -> dict[int, str]:
    """The marks of the first of these nodes that has any."""
    for node in nodes:
        _, marks = _marked(root, node)
        if marks:
            return marks
    return {}


def _marked(root: Node, node: Node) -> tuple[list[str], dict[int, str]]:
    """The lines of the program, and the underlining of ``node`` below each by its number."""
    try:
        text = str(slots.text.get().to_text(root, obj_to_underline=[node]))
    except (ModuleNotFoundError, IRTypeError):  # the node cannot be printed
        return [], {}
    lines: list[str] = []
    marks: dict[int, str] = {}
    for line in text.splitlines():
        if lines and "^" in line and not line.strip(" ^"):
            marks[len(lines) - 1] = line
        else:
            lines.append(line)
    return lines, marks
