"""The state of a walk through one expression: which objects were visited, with which results.

An expression is a graph whose size is its number of objects. As a tree it can be exponentially
larger: in ``y = x * x; z = y * y`` the object ``y`` is one node and two operands. Visitors and
mutators remember an object until they leave the outermost expression, as no statement in between
changes what the object means. Two things inside an expression can change it:

- state of the walk itself, which it declares (``_Dispatcher.apart``);
- a Let whose variable has another value elsewhere: unrolling makes ``let t = A[0] in t * t`` and
  ``let t = A[1] in t * t`` with one object ``t * t``. Objects in which such a variable is free
  (``rebound``) are visited anew at each place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.ir.node import NODE_TYPES, Node, cached_by_class, summary_of
from weft.ir.summary import identities

Known = dict[int, tuple[Node, object]]
"""Objects by ``id``, each with its result; the object is kept so that no other gets its id."""
_NO_IDS: Final[frozenset[int]] = frozenset()
_PLAIN: Final = "no rebound variables"


_NESTED: Final = frozenset({"RelaxCall", "TupleGetItem"})
"""Graph expressions that may be nested until the graph is normalised."""
_COMPARED: Final = frozenset({"Tuple", "TupleStructInfo", "FuncStructInfo"})
"""Classes whose objects are made of objects of the same class."""


@cached_by_class
def is_shared(kind: type) -> bool:
    """Whether objects of a class are visited once: expressions that hold others."""
    if issubclass(kind, PrimExpr):
        return bool(kind.CHILDREN) and "Var" not in kind.KIND
    return issubclass(kind, Node) and kind.KIND in _NESTED


def is_nested(node: Node) -> bool:
    """Whether it is a tuple of tuples, or a type of such; these are visited once, as calls are.

    A tuple of leaves is visited at each of its places, as its leaves are.
    """
    for part in node._parts_():
        if part.KIND in _COMPARED:
            return True
    return False


def is_visited_once(node: Node) -> bool:
    """Whether an object is visited once in an expression, wherever it stands."""
    kind: type = type(node)
    return is_shared(kind) or (is_compared_once(kind) and is_nested(node))


def is_sequence(kind: type) -> bool:
    """Whether it holds statements, between which the state of a walk may change."""
    return getattr(kind, "KIND", "") == "SeqExpr"


@cached_by_class
def is_compared_once(kind: type) -> bool:
    """Whether objects of a class are compared and hashed once."""
    return is_shared(kind) or (issubclass(kind, Node) and kind.KIND in _COMPARED)


def is_binder(kind: type) -> bool:
    """Whether it gives a variable a value."""
    return getattr(kind, "KIND", "") == "Let"


class Walk:
    """What was visited in one outermost expression, for each state of the walk."""

    __slots__ = ("_contexts", "_has_met_binder", "known", "root", "unstable")

    def __init__(self, root: Node) -> None:
        self.root = root
        self.known: Known = {}
        """The objects that were visited in the current state."""
        self.unstable = _NO_IDS
        """Objects (by ``id``) whose meaning depends on where they stand (see ``rebound``)."""
        self._contexts: dict[Hashable, Known] = {}
        self._has_met_binder = False

    def meet_binder(self) -> None:
        """Before the first Let is visited: find the objects that Lets make ambiguous."""
        if not self._has_met_binder:
            self._has_met_binder = True
            self.unstable = rebound(self.root)
            for known in (self.known, *self._contexts.values()):
                for key in self.unstable:
                    known.pop(key, None)

    def enter(self, state: Hashable) -> Known:
        """Begin another state of the walk; returns what ``leave`` takes."""
        outer = self.known
        self.known = self._contexts.setdefault(state, {})
        return outer

    def leave(self, outer: Known) -> None:
        """Return to the state before ``enter``."""
        self.known = outer


def rebound(root: Node) -> frozenset[int]:
    """Objects (by ``id``) in which a variable is free that is defined several times.

    With one object ``s = t * t``: of ``(let t = 1 in s) + (let t = 2 in s)`` it is ``s``. A Let
    that is visited several times for that reason defines its variable each time: if
    ``s = (let u = t in p)`` and ``p = u * u``, it is ``p``, too.
    """
    if root._cache is not None and _PLAIN in root._cache:
        return _NO_IDS
    lets = NODE_TYPES["Let"].BIT
    binders = [node for node in _order_with(root, lets) if is_binder(type(node))]
    bits: dict[int, int] = {}
    shadowed = 0
    for node in binders:
        bit = bits.get(id(node.var))
        if bit is not None:
            shadowed |= bit
        else:
            bits[id(node.var)] = 1 << len(bits)
    order = _order_with(root, lets | identities([node.var for node in binders]))
    free: dict[int, int] = {}
    for node in order:
        free[id(node)] = _free_of(node, bits, free)
    shadowed |= free[id(root)]
    shadowed = _with_visited_again(shadowed, order, bits, free)
    if not shadowed:
        if root._cache is None:
            root._cache = {}
        root._cache[_PLAIN] = True
        return _NO_IDS
    return frozenset([id(node) for node in order if free[id(node)] & shadowed])


def _with_visited_again(
    shadowed: int, order: list[Any], bits: dict[int, int], free: dict[int, int]
) -> int:
    """The variables defined several times, as bits, with those of Lets in which one is free."""
    before = 0
    while before != shadowed:
        before = shadowed
        for node in reversed(order):
            if is_binder(type(node)) and free[id(node)] & shadowed:
                shadowed |= bits[id(node.var)]
    return shadowed


def _free_of(node: Node, bits: dict[int, int], free: dict[int, int]) -> int:
    """The free variables of a node, as bits; ``free`` has those of its parts that have any."""
    own = bits.get(id(node), 0)
    if is_binder(type(node)):
        var, value, body = [getattr(node, name) for name in ("var", "value", "body")]
        return free.get(id(value), 0) | free.get(id(body), 0) & ~bits[id(var)]
    for part in node._parts_():
        own |= free.get(id(part), 0)
    return own


def _order_with(root: Node, bits: int) -> list[Any]:
    """The root and the nodes below it whose summaries have one of some bits, parts first."""

    def parts(node: Node) -> list[Node]:
        return [part for part in node._parts_() if (part._summary or summary_of(part)) & bits]

    return post_order_of(root, parts)


def post_order_of(
    root: Node, parts: Callable[[Any], Sequence[Node]] = operator.methodcaller("_parts_")
) -> list[Any]:
    """Every node below, each object once: parts first, those of one node from left to right.

    ``parts`` gives the children of a node that the walk enters.
    """
    order: list[Node] = []
    seen: set[int] = set()
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(part, False) for part in reversed(parts(node))]
    return order
