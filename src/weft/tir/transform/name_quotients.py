"""NameQuotients: quotients of a loop's variable by symbolic numbers are computed once an iteration.

Loops over symbolic axes that were fused find their places by divisions. A division by a number that
only the run tells takes as long as a hundred additions of a vector, and code generation cannot take
it out of an inner loop, since a division by zero would fault where that loop does not run. Before::

    for i in range(n * t):
        for k in range(t): A[i // t, i % t, k] = B[i // t, i % t, k] + 1

After::

    for i in range(n * t):
        quotient = i // t
        rest = i % t
        for k in range(t): A[quotient, rest, k] = B[quotient, rest, k] + 1

The divisor is not zero where the loop runs at all: all its factors are factors of the extent. Other
quotients stay where they are, as do those by constants, which take no division.
"""

from __future__ import annotations

from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map.integer import product_divides
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.tir.expr import Add, FloorDiv, FloorMod, Let, Mul, Sub, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind, LetStmt, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

_SIMPLE = (Var, IntImm, Add, Sub, Mul, FloorDiv, FloorMod)
"""What a quotient that gets a name may consist of: its value is the same in the whole iteration."""


class _NameQuotients(StmtMutator):
    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        if inner.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or _is_constant(inner.extent):
            return inner
        namer = _Namer(inner)
        body: Stmt = namer.visit(inner.body)
        for name, value in reversed(namer.names):
            body = LetStmt(name, value, body)
        return inner.with_(body=body) if namer.names else inner


class _Namer(Mutator):
    """Puts variables in the places of the quotients of one loop's variable."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.names: list[tuple[Var, PrimExpr]] = []
        """The variables with their values, each after those that it uses."""
        loops = [inside.loop_var for inside in collect(loop.body, For)]
        statements = [let.var for let in collect(loop.body, LetStmt)]
        self.inside = {*loops, *statements, *[let.var for let in collect(loop.body, Let)]}
        """The variables that the body of the loop defines."""

    def visit_FloorDiv(self, node: FloorDiv) -> PrimExpr:
        """Name a quotient."""
        return self._named(self.visit_default(node), "quotient")

    def visit_FloorMod(self, node: FloorMod) -> PrimExpr:
        """Name a remainder."""
        return self._named(self.visit_default(node), "rest")

    def _named(self, node: PrimExpr, hint: str) -> PrimExpr:
        """The variable for a quotient; the quotient itself if it gets none."""
        assert isinstance(node, (FloorDiv, FloorMod))
        if _is_constant(node.b) or not product_divides(node.b, self.loop.extent):
            return node
        if not all(isinstance(part, _SIMPLE) for part in collect(node, PrimExpr)):
            return node
        used = set(collect(node, Var))
        if used & self.inside or not used & {self.loop.loop_var, *self._named_vars()}:
            return node
        for name, value in self.names:
            if expr_deep_equal(value, node):
                return name
        self.names.append((Var(hint, node.dtype), node))
        return self.names[-1][0]

    def _named_vars(self) -> list[Var]:
        return [name for name, _ in self.names]


def _is_constant(expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm)


def name_quotients(func: PrimFunc) -> PrimFunc:
    """The function with names for the quotients of its loops' variables."""
    return rewrite_body(func, _NameQuotients())


NameQuotients = define_pass("NameQuotients", name_quotients)
