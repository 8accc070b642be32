"""Names for shared expressions: ``shared = T.meta_var(x * x)``.

For the parser, the name of a ``T.meta_var`` stands for that one expression object, and no variable
is bound. So parsing gives the same sharing again. Expressions are named if the text would be long
otherwise, or if they contain a Let, which defines a variable: a text may do that only once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.node import Node
from weft.script.printer.doc import AssignDoc, CallDoc, Doc
from weft.script.printer.docsifier import Docsifier, Frame

_LONG: Final = 400
"""If the expressions of a statement have at most this many nodes as trees, nothing is named."""
_SHORT: Final = 2
"""An expression of at most this many nodes is printed at each of its places."""


def name_shared(holder: Node, d: Docsifier, frame: Frame) -> None:
    """Add lines that name shared parts of a statement's own expressions before the statement."""
    roots = [holder] if isinstance(holder, PrimExpr) else _expressions(holder)
    name_shared_parts(roots, d, frame, frame.stmts)


def name_shared_parts(roots: list[PrimExpr], d: Docsifier, frame: Frame, stmts: list[Doc]) -> None:
    """Add lines to ``stmts`` that name what expressions share; the names end with the frame."""
    for node in _to_name([root for root in roots if root.CHILDREN], d):
        value = CallDoc(d.tir("meta_var"), (d.doc(node),))
        stmts.append(AssignDoc(d.define_value(node, "shared", frame), value))


def is_name_of_shared(line: Doc) -> bool:
    """Whether a line is one that ``name_shared`` adds."""
    value = line.rhs if isinstance(line, AssignDoc) else None
    return isinstance(value, CallDoc) and getattr(value.callee, "name", "") == "meta_var"


def _to_name(roots: Iterable[PrimExpr], d: Docsifier) -> list[PrimExpr]:
    """The expressions that need names; parts come first."""
    order: list[PrimExpr] = []
    sizes: dict[int, int] = {}
    uses: dict[int, int] = {}
    for root in roots:
        _measure(root, d, order, sizes, uses)
    total = sum([size for key, size in sizes.items() if key not in uses])
    is_long = total > _LONG and total > 2 * len(order)
    named: list[PrimExpr] = []
    printed: dict[int, int] = {}
    defining: set[int] = set()
    for node in order:
        parts = _expressions(node)
        size = 1 + sum([printed.get(id(part), 1) for part in parts])
        defines = node.KIND == "Let" or any(id(part) in defining for part in parts)
        if uses.get(id(node), 0) > 1 and ((is_long and size > _SHORT) or defines):
            named.append(node)
            size = 1
        elif defines:
            defining.add(id(node))
        printed[id(node)] = size
    return named


def _measure(
    node: PrimExpr, d: Docsifier, order: list[PrimExpr], sizes: dict[int, int], uses: dict[int, int]
) -> None:
    """Collect the nodes below without names, parts first, their sizes as trees, and their uses."""
    size = 1
    for part in _expressions(node):
        if not part.CHILDREN or "Var" in part.KIND or d.has_name(part):
            size += 1
            continue
        uses[id(part)] = uses.get(id(part), 0) + 1
        if id(part) not in sizes:
            _measure(part, d, order, sizes, uses)
        size += sizes[id(part)]
    sizes[id(node)] = size
    order.append(node)


def _expressions(node: Node) -> list[PrimExpr]:
    """The expressions right below a node."""
    return [part for part in node._parts_() if isinstance(part, PrimExpr)]
