"""Finds variables that end with a loop or a branch, though the function uses them afterwards.

In TensorIR ``s = s + A[i]`` defines a new variable for the rest of the loop's body, while in Python
it changes the outer variable. ``find`` returns the assignments for which that makes a difference:
the outer variable is read after the inner one has ended, or in the next iteration of the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

Assignment = ast.Assign | ast.AugAssign | ast.AnnAssign


@dataclass(frozen=True, eq=False)
class _Scope:
    """The statements of one body; ``owner`` is the statement that it belongs to."""

    owner: ast.AST
    branch: str
    names: dict[str, ast.AST] = field(default_factory=dict)


@dataclass(frozen=True)
class _Use:
    """A read or an assignment of a name, with the scopes around it; ``home`` owns the name."""

    name: str
    scopes: tuple[_Scope, ...]
    home: _Scope | None
    position: int
    node: ast.AST


class _Walk:
    """Collects the uses of names in the order in which they are evaluated."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.loads: list[_Use] = []
        self.stores: list[_Use] = []
        self.position = 0

    def use(self, name: str, node: ast.AST) -> _Use:
        self.position += 1
        home = next((s for s in reversed(self.scopes) if name in s.names), None)
        return _Use(name, tuple(self.scopes), home, self.position, node)

    def expression(self, node: ast.AST) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                self.loads.append(self.use(inner.id, inner))

    def bind(self, target: ast.AST, statement: ast.AST) -> None:
        for inner in ast.walk(target):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.stores.append(self.use(inner.id, statement))
                self.scopes[-1].names[inner.id] = statement
            elif isinstance(inner, ast.Name):
                self.loads.append(self.use(inner.id, inner))

    def body(
        self, owner: ast.AST, branch: str, statements: Sequence[ast.stmt], *targets: ast.AST
    ) -> None:
        self.scopes.append(_Scope(owner, branch))
        for target in targets:
            self.bind(target, owner)
        for statement in statements:
            self.statement(statement)
        self.scopes.pop()

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, Assignment):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.loads.append(self.use(node.target.id, node))
            if node.value is not None:
                self.expression(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
                self.bind(target, node)
        elif isinstance(node, ast.For):
            self.expression(node.iter)
            self.body(node, "body", node.body, node.target)
        elif isinstance(node, ast.While | ast.If):
            self.expression(node.test)
            self.body(node, "body", node.body)
            self.body(node, "else", node.orelse)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.expression(item.context_expr)
            names = [item.optional_vars for item in node.items if item.optional_vars is not None]
            self.body(node, "body", node.body, *names)
        else:
            self.expression(node)


def find(
    function: ast.FunctionDef, shadowing: Collection[ast.AST]
) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """``(assignment, name, outer definition)`` for those in ``shadowing`` that make a difference.

    ``shadowing`` are the assignments whose new variable hides one of an outer scope.
    """
    walk = _Walk()
    walk.body(
        function,
        "body",
        function.body,
        *[
            ast.Name(item.arg, ast.Store())
            for item in ast.walk(function.args)
            if isinstance(item, ast.arg)
        ],
    )
    for store in walk.stores:
        if store.node not in shadowing or store.home is None or store.home is store.scopes[-1]:
            continue
        outer = store.scopes.index(store.home)
        for load in walk.loads:
            if load.name == store.name and load.home is store.home:
                if _reaches(store, load, outer):
                    yield store.node, store.name, store.home.names[store.name]
                    break


def _reaches(store: _Use, load: _Use, outer: int) -> bool:
    """Whether Python would read at ``load`` what ``store`` assigned."""
    common = 0
    for mine, other in zip(store.scopes, load.scopes, strict=False):
        if mine is not other:
            break
        common += 1
    if any(isinstance(s.owner, ast.For | ast.While) for s in store.scopes[outer + 1 : common]):
        return True
    if load.position < store.position:
        return False
    if common == len(store.scopes) or common == len(load.scopes):
        return True
    # False for the two branches of one ``if``, of which only one runs.
    return store.scopes[common].owner is not load.scopes[common].owner
