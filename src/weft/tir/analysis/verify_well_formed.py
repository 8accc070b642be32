"""Well-formedness of PrimFuncs: variables are defined once and before use, blocks are closed.

Inside a block that has axes, only the axes may be used, not the loops around it; this allows
schedules to move the block. Axes stay in their domains (weft.tir.analysis.axis_domains).
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.support.errors import IRValueError, wrong_type
from weft.support.recursion import deep_recursion
from weft.support.span import Span
from weft.tir.analysis.axis_domains import AxisDomainError, check_axis_domains
from weft.tir.analysis.scopes import ScopeVisitor
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, Block, For


class _IllFormed(IRValueError):
    """The first fault of the walk."""


class IllFormedError(IRValueError):
    """A PrimFunc is not well formed; ``span`` is the source position of the fault, if known."""

    span: Span | None = None


class _Verifier(ScopeVisitor):
    """Raises _IllFormed at the first fault."""

    def __init__(self) -> None:
        self.scope: set[Var] = set()
        self.ever: dict[Var, Node] = {}
        self.loops: dict[Var, str | None] = {}
        self.blocks: list[str] = []

    def define(self, var: Var, where: Node) -> None:
        if var in self.scope:
            raise _IllFormed(
                f"variable {var.name} is defined twice in nested scopes{self.place()}; every "
                "definition needs its own variable"
            )
        if var in self.ever and not isinstance(where, AttrStmt):
            raise _IllFormed(
                f"variable {var.name} is defined in two places{self.place()}; every definition "
                "needs its own variable"
            )
        self.scope.add(var)
        self.ever[var] = where
        if isinstance(where, For):
            self.loops[var] = None

    def leave(self, variables: Iterable[Var]) -> None:
        for var in variables:
            self.scope.discard(var)
            self.loops.pop(var, None)

    def is_defined(self, var: Var) -> bool:
        return var in self.scope

    def use(self, var: Var) -> None:
        if var not in self.scope:
            state = "after the end of its scope" if var in self.ever else "without a definition"
            raise _IllFormed(f"variable {var.name} is used {state}{self.place()}")
        owner = self.loops.get(var)
        if owner is not None:
            raise _IllFormed(
                f"loop variable {var.name} is defined outside of any block, but is used inside "
                f"the non-opaque block {owner}; bind it to an axis of the block"
            )

    def enter_block(self, node: Block) -> None:
        if node.iter_vars:  # only the domains of axes may use the loops around the block
            for var, owner in self.loops.items():
                if owner is None:
                    self.loops[var] = node.name_hint

    def visit_Block(self, node: Block) -> None:
        hidden = [var for var, owner in self.loops.items() if owner is None]
        self.blocks.append(node.name_hint)
        ScopeVisitor.visit_Block(self, node)
        self.blocks.pop()
        for var in hidden:
            self.loops[var] = None

    def place(self) -> str:
        return f", in block {self.blocks[-1]}" if self.blocks else ""


@deep_recursion
def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether the function (or every PrimFunc of the module) is well formed.

    With ``assert_mode`` a fault raises an IRValueError that names it; otherwise the result is
    False.
    """
    if isinstance(obj, IRModule):
        return all(
            verify_well_formed(func, assert_mode)
            for func in obj.functions.values()
            if isinstance(func, PrimFunc)
        )
    if not isinstance(obj, PrimFunc):
        raise wrong_type("verify_well_formed: expected a PrimFunc", obj)
    try:
        _Verifier().function(obj)
        check_axis_domains(obj)
    except (_IllFormed, AxisDomainError) as fault:
        if assert_mode:
            name = obj.attrs.get("global_symbol", "the function")
            error = IllFormedError(f"{name} is not well formed: {fault}")
            error.span = getattr(fault, "span", None)
            raise error from None
        return False
    return True


class _SSA(ScopeVisitor):
    def __init__(self) -> None:
        self.defined: set[Var] = set()
        self.holds = True

    def define(self, var: Var, where: Node) -> None:
        if var in self.defined and not isinstance(where, (AttrStmt, Block)):
            self.holds = False
        self.defined.add(var)

    def is_defined(self, var: Var) -> bool:
        return var in self.defined


@deep_recursion
def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is defined in one place only."""
    checker = _SSA()
    checker.function(func)
    return checker.holds
