"""Short walks over TensorIR under TVM's names (``tir.stmt_functor``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

from weft.ir import functor
from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator, Replacements, Visitor, collect
from weft.ir.node import NODE_TYPES, Node
from weft.ir.summary import bits_of, identities
from weft.support.errors import IRTypeError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer
from weft.tir.expr import IterVar, Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AllocateConst, Block, DeclBuffer, For, LetStmt, Stmt

V = TypeVar("V")


def post_order_visit(stmt: object, fvisit: Callable[[Any], None]) -> None:
    """Call ``fvisit`` on every node below ``stmt``, children first, each object once."""
    functor.post_order_visit(stmt, fvisit)


class _PreOrder(Visitor):
    def __init__(self, function: Callable[[Node], bool]) -> None:
        self.function = function

    def visit_default(self, node: Node) -> None:
        if self.function(node):
            Visitor.visit_default(self, node)


@deep_recursion
def pre_order_visit(stmt: object, fvisit: Callable[[Node], bool]) -> None:
    """Call ``fvisit`` on nodes, parents first; a node's children only where it returns True."""
    _PreOrder(fvisit).visit(stmt)


@overload
def substitute(node: PrimExpr, vmap: Replacements) -> PrimExpr: ...
@overload
def substitute(node: V, vmap: Replacements) -> V: ...
def substitute(node: object, vmap: Replacements) -> object:
    """Replace variables and buffers by identity, everywhere below ``node``."""
    return functor.substitute(node, vmap)


class _Transform(Mutator):
    """``preorder`` may replace a node before its children are visited, ``postorder`` after."""

    def __init__(
        self,
        preorder: Callable[[Node], object] | None,
        postorder: Callable[[Node], object] | None,
        only: tuple[type, ...] | None,
    ) -> None:
        super().__init__()
        self.preorder, self.postorder, self.only = preorder, postorder, only

    def visit_default(self, node: Node) -> Any:
        chosen = self.only is None or isinstance(node, self.only)
        if chosen and self.preorder is not None:
            replaced = self.preorder(node)
            if replaced is not None:
                return replaced
        rebuilt = Mutator.visit_default(self, node)
        if chosen and self.postorder is not None:
            replaced = self.postorder(rebuilt)
            if replaced is not None:
                return replaced
        return rebuilt


@deep_recursion
def ir_transform(
    stmt: object,
    preorder: Callable[[Node], object] | None,
    postorder: Callable[[Node], object] | None,
    only_enable: list[str] | None = None,
) -> Any:
    """Rebuild ``stmt``, as TVM's ``ir_transform`` does.

    If ``preorder(node)`` returns a node, that node replaces it and is not visited itself. Otherwise
    the children are rebuilt, and ``postorder(node)`` may replace the result. ``only_enable`` names
    the classes (``"tir.For"``) for which both are called.
    """
    only: tuple[type, ...] | None = None
    if only_enable is not None:
        only = tuple([_class_named(name) for name in only_enable])
    return _Transform(preorder, postorder, only).visit(stmt)


def _class_named(name: str) -> type:
    kind = name.removeprefix("tir.")
    if kind not in NODE_TYPES:
        raise IRTypeError(f"ir_transform: there is no node class {name!r}")
    return NODE_TYPES[kind]


_NONE: Final[Replacements] = {}
DEFINITIONS: Final = (For, IterVar, LetStmt, Let, Allocate, AllocateConst, DeclBuffer, Block)
"""The nodes that define variables or buffers in a body."""


class _Renew(Mutator):
    """Creates a new variable or buffer for every definition, and replaces the uses.

    What defines nothing and uses nothing of what was defined before is not entered.
    """

    def __init__(self, replacements: Replacements) -> None:
        super().__init__()
        self.mapping: dict[int, tuple[Any, Any]] = {
            id(old): (old, new) for old, new in replacements.items()
        }
        self.skip_all_but(bits_of(DEFINITIONS) | identities(list(replacements)))

    def replace(self, old: Var | Buffer, fresh: Var | Buffer) -> None:
        self.mapping[id(old)] = (old, fresh)
        self.skip_less(identities([old]))

    def define(self, var: Var) -> Var:
        fresh = type(var)(var.name, var.type_annotation)
        self.replace(var, fresh)
        return fresh

    def visit_Var(self, node: Var) -> Var:
        entry = self.mapping.get(id(node))
        return node if entry is None else entry[1]

    def define_buffer(self, buffer: Buffer, *, symbols: bool = True) -> Buffer:
        """A new buffer with a new data variable and, if ``symbols``, new symbols in its shape."""
        if id(buffer.data) not in self.mapping:
            self.define(buffer.data)
        if symbols:
            for item in collect((buffer.shape, buffer.strides, buffer.elem_offset), Var):
                if id(item) not in self.mapping:
                    self.define(item)
        fresh: Buffer = Mutator.visit_default(self, buffer)
        self.replace(buffer, fresh)
        return fresh

    def visit_Buffer(self, node: Buffer) -> Buffer:
        entry = self.mapping.get(id(node))
        return Mutator.visit_default(self, node) if entry is None else entry[1]

    def visit_For(self, node: For) -> For:
        low, extent = self.visit(node.min), self.visit(node.extent)
        var = self.define(node.loop_var)
        binding = None if node.thread_binding is None else self.visit(node.thread_binding)
        return node.with_(
            loop_var=var, min=low, extent=extent, thread_binding=binding, body=self.visit(node.body)
        )

    def visit_IterVar(self, node: IterVar) -> IterVar:
        dom = None if node.dom is None else self.visit(node.dom)
        known = self.mapping.get(id(node.var))
        var = self.define(node.var) if known is None else known[1]
        return IterVar(dom, var, node.iter_type, node.thread_tag, span=node.span)

    def visit_LetStmt(self, node: LetStmt) -> LetStmt:
        value = self.visit(node.value)
        return node.with_(value=value, var=self.define(node.var), body=self.visit(node.body))

    visit_Let = visit_LetStmt

    def visit_Allocate(self, node: Allocate) -> Allocate:
        self.define(node.buffer_var)
        return Mutator.visit_default(self, node)

    visit_AllocateConst = visit_Allocate

    def visit_DeclBuffer(self, node: DeclBuffer) -> DeclBuffer:
        fresh: Buffer = Mutator.visit_default(self, node.buffer)
        if fresh is node.buffer:
            fresh = buffer_copy(node.buffer)
        self.replace(node.buffer, fresh)
        return node.with_(buffer=fresh, body=self.visit(node.body))

    def visit_Block(self, node: Block) -> Block:
        iter_vars = self.visit(node.iter_vars)
        allocated = [self.define_buffer(buffer, symbols=False) for buffer in node.alloc_buffers]
        matches = []
        for match in node.match_buffers:
            source = self.visit(match.source)
            matches.append(match.with_(buffer=self.define_buffer(match.buffer), source=source))
        return node.with_(
            iter_vars=iter_vars,
            alloc_buffers=allocated,
            match_buffers=matches,
            reads=self.visit(node.reads),
            writes=self.visit(node.writes),
            init=None if node.init is None else self.visit(node.init),
            body=self.visit(node.body),
        )


def buffer_copy(buffer: Buffer) -> Buffer:
    """Another buffer with the same fields."""
    values = [getattr(buffer, name) for name in Buffer.INIT_FIELDS]
    return Buffer(*values, span=buffer.span)


@deep_recursion
def renew_defs(func: PrimFunc) -> PrimFunc:
    """A copy of the function in which every definition is a new variable or buffer."""
    renew = _Renew(_NONE)
    params = [renew.define(param) for param in func.params]
    buffers = {}
    for old, new in zip(func.params, params, strict=True):
        if old in func.buffer_map:
            buffers[new] = renew.define_buffer(func.buffer_map[old])
    body: Stmt = renew.visit(func.body)
    return func.with_(params=params, buffer_map=buffers, body=body)


@deep_recursion
def redefined(stmt: Stmt, replacements: Replacements = _NONE) -> Stmt:
    """A copy of a statement in which every definition is a new variable or buffer.

    Variables from outside are replaced as ``substitute`` does it, in the same walk.
    """
    return _Renew(replacements).visit(stmt)
