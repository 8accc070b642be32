"""Visitor and Mutator: one of each for both IRs; helpers for the common short walks.

A subclass defines ``visit_For``, ``visit_BufferStore`` ... (the class names of nodes); what it
does not define goes through the node's children. Where both IRs have a class of one name, relax's
says ``KIND = "RelaxVar"`` and is visited by ``visit_RelaxVar``. A method that names no known node
is a TypeError when the class is made. Dispatch is one dictionary lookup on ``type(node)``.

Twenty steps ``x = x * x`` are twenty objects, but a tree of a million nodes. So each object is
visited once in an outermost expression, and its result is shared as it was (``weft.ir.sharing``). A
subclass that changes its state inside of an expression does so in ``with self.apart(state)``. A
node that contains none of the classes that a subclass has methods for is skipped
(``weft.ir.summary``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar, overload

from weft.ir.expr import PrimExpr
from weft.ir.node import NODE_TYPES, Map, Node, nodes_in, rebuilt_items, summary_of
from weft.ir.sharing import Walk, is_binder, is_compared_once, is_nested, is_sequence, is_shared
from weft.ir.summary import IDENTITIES, bits_of, identities, summary_of_value
from weft.support.errors import IRTypeError, wrong_type
from weft.support.recursion import deep_recursion

N = TypeVar("N", bound=Node)
V = TypeVar("V")
Replacements = Mapping[Any, object]
"""Variable or buffer -> what replaces it."""

_DEFAULT = "visit_default"
_FRAMEWORK = frozenset({_DEFAULT, "visit_field"})
_FRAMEWORK_METHODS = _FRAMEWORK | {"visit"}
_EACH_TIME, _ONCE, _BINDER, _BY_MUTATOR, _SEQUENCE, _IF_NESTED = range(6)
"""How the objects of a class are visited.

- ``_EACH_TIME``: at each place where an object stands;
- ``_ONCE``: once in an outermost expression;
- ``_BINDER``: likewise, of a class that gives a variable a value (Let);
- ``_BY_MUTATOR``: once by a mutator;
- ``_SEQUENCE``: statements inside of an expression, which are visited as if outside of it;
- ``_IF_NESTED``: once if it is a tuple that holds tuples, else at each place."""


class _Handlers(dict[type, tuple[str, int]]):
    """Node class -> its method, and how objects of it are visited: a memo that grows with use.

    ``ignored`` grows, too: the bits (``weft.ir.summary``) of node classes that have no method of
    their own. A node whose bits are all among them is skipped. It is 0, so that nothing is skipped,
    if a subclass handles every node, with its own ``visit`` or ``visit_default``.
    """

    __slots__ = ("ignored",)

    def __init__(self, ignored: int) -> None:
        super().__init__()
        self.ignored = ignored


class _Dispatcher:
    """Finds the handler of a node class: nearest class of its MRO with a ``visit_`` method."""

    _handlers: _Handlers
    MEMOISED: ClassVar[frozenset[str]] = frozenset()
    _walk: Walk | None = None
    """What was visited of the current outermost expression; None outside of expressions."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._handlers = _Handlers(0 if _handles_every_node(cls) else IDENTITIES)
        for name in cls.__dict__:
            if name.startswith("visit_") and name not in _FRAMEWORK:
                kind = name.removeprefix("visit_")
                if kind not in NODE_TYPES and kind not in _ABSTRACT:
                    raise IRTypeError(f"{cls.__name__}.{name}: there is no node class {kind}")

    def skip_all_but(self, bits: int) -> None:
        """Skip nodes that have none of some bits (``weft.ir.summary``): nothing in them matters.

        More precise than the classes that have methods, where it is known which variables matter.
        """
        handlers = _Handlers(~bits)
        handlers.update(self._handlers)
        self._handlers = handlers

    def skip_less(self, bits: int) -> None:
        """From now on nodes with these bits are visited, too (after ``skip_all_but``)."""
        self._handlers.ignored &= ~bits

    @contextmanager
    def apart(self, state: Hashable) -> Iterator[None]:
        """Visit a part of an expression in another state of this visitor or mutator.

        Objects in it are visited once for each ``state``, which has to tell all states apart::

            outer, self.is_index = self.is_index, True
            with self.apart(True):
                self.visit(load.indices)
            self.is_index = outer
        """
        walk = self._walk
        outer = None if walk is None else walk.enter(state)
        try:
            yield
        finally:
            if walk is not None and outer is not None:
                walk.leave(outer)

    def _outermost(self, node: Node, method: str, how: int) -> object:
        """Visit an expression that is in no other expression."""
        self._walk = Walk(node)
        if how == _BINDER:
            self._walk.meet_binder()
        try:
            return getattr(self, method)(node)
        finally:
            self._walk = None

    def _sequence(self, node: Node, method: str) -> object:
        """Visit statements inside of an expression: each is visited as if outside of it."""
        outer, self._walk = self._walk, None
        try:
            return getattr(self, method)(node)
        finally:
            self._walk = outer

    def _handler_of(self, kind: type) -> tuple[str, int]:
        """The method for objects of a class, and how they are visited; it is remembered."""
        if not issubclass(kind, Node):
            handler = self._handlers[kind] = type(self)._handlers[kind] = "visit_field", _EACH_TIME
            return handler
        if getattr(kind, "KIND", "") == "RelaxCall" and not hasattr(self, "visit_RelaxCall"):
            if hasattr(self, "visit_Call"):
                raise IRTypeError(
                    f"{type(self).__name__}.visit_Call is for calls of TensorIR and would never "
                    "see the calls of this graph: write visit_RelaxCall"
                )
        for base in kind.__mro__:
            name = f"visit_{base.__dict__.get('KIND', base.__name__)}"
            if base is not Node and hasattr(self, name):
                break
        else:
            name = _DEFAULT
        how = _EACH_TIME
        if kind.__name__ in self.MEMOISED:
            how = _BY_MUTATOR
        elif is_shared(kind):
            how = _BINDER if is_binder(kind) else _ONCE
        elif is_compared_once(kind):
            how = _IF_NESTED
        elif is_sequence(kind):
            how = _SEQUENCE
        handlers = type(self)._handlers
        handler = handlers[kind] = self._handlers[kind] = (name, how)
        if name is _DEFAULT and handlers.ignored and not kind.IS_OPEN:
            handlers.ignored |= kind.BIT
        return handler


# Bases that are no nodes themselves, and two node classes of higher packages named in this module.
_ABSTRACT = frozenset(
    "Var Buffer PrimExpr RelaxExpr Expr Stmt StructInfo BinaryExpr Type BaseFunc Binding "
    "CompareExpr".split()
)


def _handles_every_node(cls: type) -> bool:
    """Whether a subclass has one of the methods through which every node goes."""
    for base in cls.__mro__:
        if base.__module__ == __name__ and base.__name__ in ("Visitor", "Mutator"):
            return False
        if not _FRAMEWORK_METHODS.isdisjoint(base.__dict__):
            return True
    return False


class Visitor(_Dispatcher):
    """Walks nodes for effect; ``visit(node)`` dispatches, ``visit_default`` enters children."""

    def visit(self, node: Any) -> None:
        """Visit a node, or every node in a sequence or mapping; other values pass."""
        kind = type(node)
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handler_of(kind)
        method, how = handler
        if method is _DEFAULT:
            ignored = self._handlers.ignored
            if (node._summary or summary_of(node)) | ignored == ignored:
                return
        if how == _EACH_TIME or (how == _IF_NESTED and not is_nested(node)):
            getattr(self, method)(node)
            return
        if how == _SEQUENCE:
            self._sequence(node, method)
            return
        walk = self._walk
        if walk is None:
            self._outermost(node, method, how)
        elif id(node) not in walk.known:
            if how == _BINDER:
                walk.meet_binder()
            getattr(self, method)(node)
            if id(node) not in walk.unstable:
                walk.known[id(node)] = node, None

    def visit_default(self, node: Node) -> None:
        """Visit the children in declaration order."""
        handlers = self._handlers
        for part in node._parts_():
            ignored = handlers.ignored  # as ``visit`` skips it, without a call
            if (part._summary or summary_of(part)) | ignored != ignored:
                self.visit(part)

    def visit_field(self, value: object) -> None:
        """Visit what is inside a sequence or mapping."""
        handlers = self._handlers
        for part in nodes_in(value):
            ignored = handlers.ignored
            if (part._summary or summary_of(part)) | ignored != ignored:
                self.visit(part)


class Mutator(_Dispatcher):
    """Rebuilds nodes bottom up; what does not change stays the same object.

    A Buffer (and any class in ``MEMOISED``) is rebuilt once per mutator, so that all its uses
    still share one object.
    """

    MEMOISED: ClassVar[frozenset[str]] = frozenset({"Buffer"})

    _memo: dict[int, tuple[Node, object]]

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """The mutator with its memory, so that a subclass need not call ``super().__init__``."""
        mutator = super().__new__(cls)
        mutator._memo = {}
        return mutator

    @overload
    def visit(self, node: PrimExpr) -> PrimExpr: ...
    @overload
    def visit(self, node: V) -> V: ...
    def visit(self, node: Any) -> Any:
        """The rewritten node, sequence or mapping; other values pass unchanged."""
        kind = type(node)
        handler = self._handlers.get(kind)
        if handler is None:
            handler = self._handler_of(kind)
        method, how = handler
        if method is _DEFAULT:
            ignored = self._handlers.ignored
            if (node._summary or summary_of(node)) | ignored == ignored:
                return node
        if how == _EACH_TIME:
            return getattr(self, method)(node)
        if how > _BINDER:
            if how == _IF_NESTED and not is_nested(node):
                return getattr(self, method)(node)
            if how == _BY_MUTATOR:
                known = self._memo.get(id(node))
                if known is None:
                    known = self._memo[id(node)] = (node, getattr(self, method)(node))
                return known[1]
            if how == _SEQUENCE:
                return self._sequence(node, method)
        walk = self._walk
        if walk is None:
            return self._outermost(node, method, how)
        known = walk.known.get(id(node))
        if known is None:
            if how == _BINDER:
                walk.meet_binder()
            known = node, getattr(self, method)(node)
            if id(node) not in walk.unstable:
                walk.known[id(node)] = known
        return known[1]

    def visit_default(self, node: N) -> N:
        """Rewrite the children; the same object if none changed."""
        return node._rebuilt_(self.visit, self._handlers)

    def visit_field(self, value: object) -> object:
        """Rewrite what is inside a sequence or mapping; the same object if nothing changed."""
        if isinstance(value, (tuple, list)):
            return rebuilt_items(value, self.visit, self._handlers)
        if isinstance(value, Map):
            entries = {}
            changed = False
            for key, item in value.items():
                new = self.visit(item)
                changed = changed or new is not item
                entries[key] = new
            return type(value)(entries) if changed else value
        return value


def _post_order(
    nodes: Iterable[Node],
    kind: type[N] | tuple[type[N], ...],
    bits: int,
    function: Callable[[N], None],
    seen: dict[int, Node],
) -> None:
    """Call ``function`` on every node of a class: the most frequent walk, so without dispatch.

    ``bits`` are those of the class; a part without any of them is skipped.
    """
    for node in nodes:
        if (node._summary or summary_of(node)) & bits and id(node) not in seen:
            seen[id(node)] = node
            parts = node._parts_()
            if parts:
                _post_order(parts, kind, bits, function, seen)
            if isinstance(node, kind):
                function(node)


@deep_recursion
def post_order_visit(root: object, function: Callable[[Node], None]) -> None:
    """Call ``function`` on every node below ``root``, children first, each object once."""
    _post_order(nodes_in(root), Node, -1, function, {})


@deep_recursion
def collect(root: object, kind: type[N] | tuple[type[N], ...]) -> list[N]:
    """Every node of a class below ``root``, in post order, each object once."""
    nodes: list[N] = []
    _post_order(nodes_in(root), kind, bits_of(kind), nodes.append, {})
    return nodes


def contains(root: object, kind: type[Node] | tuple[type[Node], ...]) -> bool:
    """Whether a node of a class stands below ``root``: as ``bool(collect(root, kind))``, at once.

    >>> from weft import tir
    >>> contains([tir.Var("i", "int32") + 1], tir.Add), contains(tir.Var("i", "int32"), tir.Add)
    (True, False)
    """
    summary = summary_of_value(root)
    return bool(collect(root, kind)) if summary == -1 else bool(summary & bits_of(kind))


@deep_recursion
def mentions(root: object, *wanted: Node) -> bool:
    """Whether one of some variables or buffers stands below ``root``, by identity.

    Parts whose summary has none of their bits are not entered.

    >>> from weft import tir
    >>> i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    >>> mentions([i + 1, i * 2], i), mentions(i + 1, j)
    (True, False)
    """
    names = {id(node) for node in wanted}
    seen: dict[int, Node] = {}
    _post_order(nodes_in(root), Node, identities(list(wanted)), lambda _: None, seen)
    return not names.isdisjoint(seen)


class _Rewrite(Mutator):
    def __init__(self, function: Callable[[Node], Node | None]) -> None:
        super().__init__()
        self.function = function

    def visit_default(self, node: Node) -> Any:
        rebuilt = Mutator.visit_default(self, node)
        replaced = self.function(rebuilt)
        return rebuilt if replaced is None else replaced


@deep_recursion
def rewrite(root: N, function: Callable[[Node], Node | None]) -> N:
    """Rebuild bottom up: ``function`` gets each node with rewritten children, and replaces it.

    If it returns None, the node stays.
    """
    return _Rewrite(function).visit(root)


class _Substitute(Mutator):
    MEMOISED: ClassVar[frozenset[str]] = frozenset(
        "Buffer BufferLoad Ramp Broadcast Cast Add Sub Mul FloorDiv FloorMod".split()
    )
    """What becomes of a node is the same wherever it stands. So statements that share an index
    share it afterwards, and what is computed of it (a simpler form, a bound) is computed once."""

    def __init__(self, mapping: Mapping[Node, object]) -> None:
        super().__init__()
        if not isinstance(mapping, Mapping):
            raise wrong_type(
                "substitute: expected a mapping from variables to expressions", mapping
            )
        self.mapping = {id(key): value for key, value in mapping.items()}
        self.skip_all_but(identities(list(mapping)))

    def visit_Var(self, node: Node) -> object:
        return self.mapping.get(id(node), node)

    def visit_Buffer(self, node: Node) -> object:
        replacement = self.mapping.get(id(node))
        return self.visit_default(node) if replacement is None else replacement


@overload
def substitute(root: PrimExpr, mapping: Replacements) -> PrimExpr: ...
@overload
def substitute(root: V, mapping: Replacements) -> V: ...
@deep_recursion
def substitute(root: object, mapping: Replacements) -> object:
    """Replace variables (and whole buffers), by identity, everywhere below ``root``.

    Definitions (a loop variable, say) are replaced, too: the caller must give a variable there.
    """
    return _Substitute(mapping).visit(root) if mapping else root
