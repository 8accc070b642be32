"""Names for what the extents of a graph share, in its signature and before its bindings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.function import BaseFunc
from weft.ir.node import Node
from weft.relax.expr import If, SeqExpr
from weft.script.printer.doc import Doc
from weft.script.printer.docsifier import Docsifier, Frame
from weft.script.printer.shared_values import name_shared_parts

_WITH_BINDINGS: Final = (BaseFunc, SeqExpr, If)
"""Graph nodes that hold bindings, before which the names for these are defined."""


def name_shared_extents(
    holders: Iterable[Node | None], d: Docsifier, frame: Frame, stmts: list[Doc]
) -> None:
    """Add lines to ``stmts`` that name shared parts of all extents and scalars in graph nodes.

    The holders are calls, shapes or types; functions inside them name their own.
    """
    pending = [holder for holder in reversed(list(holders)) if holder is not None]
    roots: list[PrimExpr] = []
    visited: set[int] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, PrimExpr):
            roots.append(node)
        elif id(node) not in visited and not isinstance(node, _WITH_BINDINGS):
            visited.add(id(node))
            pending += reversed(node._parts_())
    name_shared_parts(roots, d, frame, stmts)
