"""Calls nested in one another, as an expression that is not in normal form has them.

An object may stand in many places: in ``y = x + x; y * -y`` it is one addition, computed once.
``calls_to_bind`` says which objects need a name so that this stays so; of the example it is
``[y]``. The printer gives names, and so do mutators that rebuild such an expression.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import Node
from weft.ir.sharing import post_order_of
from weft.relax.expr import Call, Tuple, TupleGetItem

NESTED: Final = (Call, Tuple, TupleGetItem)
"""Expressions that stand in others until they are normalised."""


def calls_to_bind(root: Node) -> list[RelaxExpr]:
    """What is bound before ``root``, parts first; nothing where each object has one place.

    Every call up to the last one in many places is: calls may print, or write in their arguments,
    and stay in their order. A tuple of leaves is an argument as it is.
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
        if here > 1 and _takes_line(node):
            last = max(last, position)
            tuples.add(id(node))
            here = 1
        for part in _parts(node):
            if id(part) in places:
                places[id(part)] += here
    return [
        node for node in order[: last + 1] if not isinstance(node, Tuple) or id(node) in tuples
    ]


def _takes_line(node: RelaxExpr) -> bool:
    """Whether a node in many places has a name: a tuple of leaves stays an argument."""
    return not isinstance(node, Tuple) or any(isinstance(part, Tuple) for part in node.fields)


def _parts(node: RelaxExpr) -> list[RelaxExpr]:
    """The expressions right below that print in the same line."""
    if isinstance(node, Call):
        return [node.op, *node.args]
    if isinstance(node, Tuple):
        return list(node.fields)
    return [node.tuple_value] if isinstance(node, TupleGetItem) else []


def _nested_parts(node: RelaxExpr) -> list[RelaxExpr]:
    """Those of the parts that hold others; in normal form there are none."""
    return [part for part in _parts(node) if isinstance(part, NESTED)]
