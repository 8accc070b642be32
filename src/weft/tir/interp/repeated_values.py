"""Finds subexpressions that occur very often in one expression, to be evaluated once."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.sharing import is_shared, post_order_of, rebound
from weft.tir.expr import Call
from weft.tir.intrinsic import CallEffectKind, effect_of

_FEW: Final = 64


def repeated_values(root: PrimExpr) -> dict[int, PrimExpr]:
    """The subexpressions, by ``id``, that are operands of several others.

    Empty if the expression, written as a tree, is not much larger than its number of objects, or if
    a call in it may change memory that it loads.
    """
    if not is_shared(type(root)):
        return {}
    order = post_order_of(root)
    sizes: dict[int, int] = {}
    uses: dict[int, int] = {}
    for node in order:
        parts = node._parts_()
        sizes[id(node)] = 1 + sum([sizes[id(part)] for part in parts])
        for part in parts:
            uses[id(part)] = uses.get(id(part), 0) + 1
    if sizes[id(root)] <= _FEW + 2 * len(order):
        return {}
    calls = [node for node in order if isinstance(node, Call)]
    if any(effect_of(call) >= CallEffectKind.UpdateState for call in calls):
        return {}
    unstable = rebound(root)
    return {
        id(node): node
        for node in order
        if isinstance(node, PrimExpr)
        and is_shared(type(node))
        and uses.get(id(node), 0) > 1
        and id(node) not in unstable
    }
