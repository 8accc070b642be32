"""Calls nested in one another, as an expression that is not in normal form has them.

One object may be an operand in several places: after ``y = x + x``, the expression ``y * -y`` holds
one addition, which is computed once. ``calls_to_bind`` returns the objects that must be bound to a
variable to keep it so, here ``[y]``. The printer binds them, and so do mutators.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import Node
from weft.ir.sharing import post_order_of
from weft.relax.expr import Call, Tuple, TupleGetItem

NESTED: Final = (Call, Tuple, TupleGetItem)
"""Expressions that may be operands of others before normalisation."""


def calls_to_bind(root: Node) -> list[RelaxExpr]:
    """The parts of ``root`` to bind before it, operands first; none if each part is used once.

    Once a part that is used twice is bound, every call before it is bound, too: calls may have side
    effects, so their order must stay. A tuple of leaves is not bound: it may be an argument.
    """
    if not isinstance(root, NESTED) or not _nested_parts(root):
        return []
    order = post_order_of(root, _nested_parts)
    places = {id(node): 0 for node in order}
    places[id(root)] = 1
    last, tuples = -1, set()
    for position in range(len(order) - 1, -1, -1):
        node = order[position]
        here = places[id(node)]
        if here > 1 and _needs_variable(node):
            last = max(last, position)
            tuples.add(id(node))
            here = 1
        for part in _parts(node):
            if id(part) in places:
                places[id(part)] += here
    return [node for node in order[: last + 1] if not isinstance(node, Tuple) or id(node) in tuples]


def _needs_variable(node: RelaxExpr) -> bool:
    """Whether a node that is used twice gets a variable: a tuple of leaves stays an argument."""
    return not isinstance(node, Tuple) or any(isinstance(part, Tuple) for part in node.fields)


def _parts(node: RelaxExpr) -> list[RelaxExpr]:
    """The direct operands of a call, a tuple or a field."""
    if isinstance(node, Call):
        return [node.op, *node.args]
    if isinstance(node, Tuple):
        return list(node.fields)
    return [node.tuple_value] if isinstance(node, TupleGetItem) else []


def _nested_parts(node: RelaxExpr) -> list[RelaxExpr]:
    """The operands that have operands themselves; in normal form there are none."""
    return [part for part in _parts(node) if isinstance(part, NESTED)]
