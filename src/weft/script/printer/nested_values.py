"""Prints a graph expression with shared calls as several lines.

``y = x + x; y * -y`` has one addition. Printed as one line it would be there twice, and the parser
would build two::

    gv = R.add(x, x)
    R.multiply(gv, R.negative(gv))

The lines are the bindings that normalising makes, in the same order, up to the last shared object.
So parsing gives the normalised expression.
"""

from __future__ import annotations

from weft.ir.node import Node
from weft.relax.ir.nested_calls import calls_to_bind
from weft.script.printer.doc import AssignDoc, Doc, StmtBlockDoc
from weft.script.printer.docsifier import Docsifier

Line = tuple[Node, AssignDoc]
"""A named node, and the line that defines the name."""


def bind_nested(value: Node, d: Docsifier, hint: str = "gv") -> list[Line]:
    """The lines that an expression needs before its own, with the nodes that they name.

    The names are valid for this expression alone (``forget_nested``).
    """
    lines: list[Line] = []
    for node in calls_to_bind(value):
        doc = d.doc(node)
        lines.append((node, AssignDoc(d.define_value(node, hint, d.frames[-1]), doc)))
    return lines


def forget_nested(lines: list[Line], d: Docsifier) -> None:
    """Remove the names from the nodes of ``bind_nested``; the names are not used again."""
    for node, _ in lines:
        d.values.discard(id(node))
        d.docs.pop(id(node), None)


def with_nested(lines: list[Line], line: Doc, d: Docsifier) -> Doc:
    """The line of an expression after the lines that it needs, whose names are removed."""
    forget_nested(lines, d)
    return StmtBlockDoc([*[above for _, above in lines], line]) if lines else line
