"""The variables that a statement or expression uses but does not define."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.ir.node import Array, Node
from weft.support.recursion import deep_recursion
from weft.tir.analysis.scopes import ScopeVisitor
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


class UndefinedVars(ScopeVisitor):
    """Collects in ``undefined`` what a walk uses outside of its definitions, in order."""

    def __init__(self, defined: Sequence[Var]) -> None:
        self.count: dict[Var, int] = dict.fromkeys(defined, 1)
        self.undefined: dict[Var, None] = {}

    def define(self, var: Var, where: Node) -> None:
        self.count[var] = self.count.get(var, 0) + 1

    def leave(self, variables: Iterable[Var]) -> None:
        for var in variables:
            self.count[var] -= 1

    def is_defined(self, var: Var) -> bool:
        return self.count.get(var, 0) > 0

    def use(self, var: Var) -> None:
        if not self.is_defined(var):
            self.undefined[var] = None


@deep_recursion
def undefined_vars(node: Any, defs: Sequence[Var] = ()) -> Array[Var]:
    """Variables used in ``node`` (statement, expression or function) without a definition.

    In order of first use; ``defs`` count as defined. A buffer's data counts as used where the
    buffer is accessed.
    """
    finder = UndefinedVars(defs)
    if isinstance(node, PrimFunc):
        finder.function(node)
    else:
        finder.visit(node)
    return Array(finder.undefined)
