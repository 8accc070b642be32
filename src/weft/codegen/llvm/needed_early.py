"""Values that are computed before a branch, since it and what follows it need them.

Of ``y = if_then_else(c, x, 0) + x`` the first use of ``x`` is in a branch and does not hold after
it. Computed at both places, thirty such steps would be a billion. So before the first branch of an
expression all that is surely needed in it is computed, if it stands at several places and has
branches itself; and what is needed perhaps, but would be computed very often, if it cannot fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.codegen.llvm.faulting import can_fault
from weft.ir.expr import PrimExpr
from weft.ir.op import Op
from weft.ir.sharing import parts_of, post_order_of
from weft.tir import expr as e

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter

_MANY: Final = 16
"""Ways to a value beyond which it is computed before it is known to be needed."""


def before_branch(em: Emitter, choice: Any) -> None:
    """Compute what is needed whichever way ``choice`` goes, and here or later as well."""
    emitted = em.emitted
    if emitted.is_prepared or emitted.root is None:
        return
    emitted.is_prepared = True
    for node, is_sure in _candidates(emitted.root, choice):
        if is_sure or not can_fault(em, node):
            em.value(node)


def _candidates(root: Any, choice: Any) -> list[tuple[Any, bool]]:
    """Values with a choice in them that several others use, parts first; whether surely needed."""
    order = post_order_of(root, _parts)
    has_choice: set[int] = set()
    is_open: set[int] = set()
    """What contains ``choice``, and so may be half emitted."""
    for node in order:
        parts = {id(part) for part in _parts(node)}
        if _arms(node) or not parts.isdisjoint(has_choice):
            has_choice.add(id(node))
        if node is choice or not parts.isdisjoint(is_open):
            is_open.add(id(node))
    paths, uses, sure = {id(root): 1}, dict.fromkeys(map(id, order), 0), {id(root)}
    for node in reversed(order):
        for part in _parts(node):
            paths[id(part)] = paths.get(id(part), 0) + paths[id(node)]
            uses[id(part)] += 1
        if id(node) in sure:
            sure.update(map(id, _surely_needed(node)))
    return [
        (node, id(node) in sure)
        for node in order
        if uses[id(node)] > 1 and id(node) in has_choice and id(node) not in is_open
        and (id(node) in sure or paths[id(node)] > _MANY)
    ]  # fmt: skip


def _arms(node: Any) -> tuple[Any, ...]:
    """The parts that are computed on a condition; a single one may be left out."""
    if isinstance(node, e.Select):
        return node.true_value, node.false_value
    if isinstance(node, e.And | e.Or):
        return (node.b,)
    if isinstance(node, e.Call) and isinstance(node.op, Op) and node.op.name == "tir.if_then_else":
        return tuple(node.args[1:])
    return ()


def _surely_needed(node: Any) -> list[Any]:
    """What is computed with a node: its parts without its arms, and what these have in common."""
    arms = _arms(node)
    parts = [part for part in _parts(node) if not any(part is arm for arm in arms)]
    if len(arms) == 2:
        one, other = (_below(arm) for arm in arms)
        parts += [part for key, part in one.items() if key in other]
    return parts


def _below(arm: Any) -> dict[int, Any]:
    """What is computed with an arm, as far as the next choice."""
    found: dict[int, Any] = {}
    waiting = [arm]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            arms = _arms(node)
            waiting += [part for part in _parts(node) if not any(part is arm for arm in arms)]
    return found


def _parts(node: Any) -> list[Any]:
    """The expressions right below that are values of their own; a Let's are left to it."""
    if isinstance(node, e.Let):
        return [node.value]
    return [part for part in parts_of(node) if isinstance(part, PrimExpr)]
