"""Lines for the calls nested in a graph expression of which one stands in many places.

``y = x + x; y * -y`` is one addition. As one line it would be written twice, and be read as two::

    gv = R.add(x, x)
    R.multiply(gv, R.negative(gv))

The lines are the bindings that normalising makes, in its order, up to the last object that
stands in many places. So what is read is what ``normalize`` makes of the expression.
"""

from __future__ import annotations

from weft.ir.node import Node
from weft.relax.ir.nested_calls import calls_to_bind
from weft.script.printer.doc import AssignDoc, Doc, StmtBlockDoc
from weft.script.printer.docsifier import Docsifier

Line = tuple[Node, AssignDoc]
"""A node that has a name, and the line that gives it."""


def bind_nested(value: Node, d: Docsifier, hint: str = "gv") -> list[Line]:
    """The lines that an expression needs before its own, with the nodes that they name.

    The names are for this expression alone (``forget_nested``): the next one computes anew.
    """
    lines: list[Line] = []
    for node in calls_to_bind(value):
        doc = d.doc(node)
        lines.append((node, AssignDoc(d.define_value(node, hint, d.frames[-1]), doc)))
    return lines


def forget_nested(lines: list[Line], d: Docsifier) -> None:
    """Let the nodes of ``bind_nested`` have no name any more; the names stay taken."""
    for node, _ in lines:
        d.values.discard(id(node))
        d.docs.pop(id(node), None)


def with_nested(lines: list[Line], line: Doc, d: Docsifier) -> Doc:
    """The line of an expression below those that it needs, which are forgotten."""
    forget_nested(lines, d)
    return StmtBlockDoc([*[above for _, above in lines], line]) if lines else line
