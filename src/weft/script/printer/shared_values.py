"""Names for expressions that stand in many places: ``shared = T.meta_var(x * x)``.

The parser keeps the value of ``T.meta_var`` as it is: the name means that one expression wherever
it stands, and no variable is bound. So a text that names what is shared gives the same graph again.
There are names where the text would be long without, and for what holds a Let: that defines a
variable, which a text may do only once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.node import Node
from weft.ir.sharing import parts_of
from weft.script.printer.doc import AssignDoc, CallDoc, Doc
from weft.script.printer.docsifier import Docsifier, Frame

_LONG: Final = 400
"""Nodes of all expressions of a statement, as trees, that are printed as they are."""
_SHORT: Final = 2
"""Nodes of an expression that is written out at each of its places."""


def name_shared(holder: Node, d: Docsifier, frame: Frame) -> None:
    """Add the names that the expressions right in a statement need to the lines before it."""
    roots = [holder] if isinstance(holder, PrimExpr) else _expressions(holder)
    for node in _to_name([root for root in roots if root.CHILDREN], d):
        value = CallDoc(d.tir("meta_var"), (d.doc(node),))
        frame.stmts.append(AssignDoc(d.define_value(node, "shared", frame), value))


def is_name_of_shared(line: Doc) -> bool:
    """Whether a line is one that ``name_shared`` adds."""
    value = line.rhs if isinstance(line, AssignDoc) else None
    return isinstance(value, CallDoc) and getattr(value.callee, "name", "") == "meta_var"


def _to_name(roots: Iterable[PrimExpr], d: Docsifier) -> list[PrimExpr]:
    """Expressions that need names, parts first."""
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
    """Nodes below that have no name, parts first; their sizes as trees, how often they stand."""
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
    return [part for part in parts_of(node) if isinstance(part, PrimExpr)]
