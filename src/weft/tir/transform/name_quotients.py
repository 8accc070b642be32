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

The divisor is not zero where the loop runs at all: all its factors are factors of what the loop, or
one around it, counts, be it by parts as in ``(n * t + 7) // 8``. Other quotients stay where they
are, as do those by constants, which take no division.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map.integer import parts_counted, product_divides
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.tir.expr import Add, FloorDiv, FloorMod, Let, Max, Min, Mul, Sub, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind, LetStmt, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

_SIMPLE = (Var, IntImm, Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)
"""What a quotient that gets a name may consist of: its value is the same in the whole iteration."""


class _NameQuotients(StmtMutator):
    def __init__(self) -> None:
        self.counted: list[PrimExpr] = []
        """What the loops around count, which is not zero inside of them."""

    def visit_For(self, loop: For) -> For:
        parts = parts_counted(loop.extent)
        self.counted.append(loop.extent if parts is None else parts[0])
        inner: For = self.visit_default(loop)
        namer = _Namer(inner, self.counted)
        if inner.kind in (ForKind.SERIAL, ForKind.PARALLEL):
            inner = namer.named_body()
        self.counted.pop()
        return inner


class _Namer(Mutator):
    """Puts variables in the places of the quotients of one loop's variable."""

    def __init__(self, loop: For, counted: Sequence[PrimExpr]) -> None:
        self.loop, self.counted = loop, counted
        self.names: list[tuple[Var, PrimExpr]] = []
        """The variables with their values, each after those that it uses."""
        loops = [inside.loop_var for inside in collect(loop.body, For)]
        statements = [let.var for let in collect(loop.body, LetStmt)]
        self.inside = {*loops, *statements, *[let.var for let in collect(loop.body, Let)]}
        """The variables that the body of the loop defines."""

    def named_body(self) -> For:
        """The loop with names for the quotients in its body."""
        body: Stmt = self.visit(self.loop.body)
        for name, value in reversed(self.names):
            body = LetStmt(name, value, body)
        return self.loop.with_(body=body) if self.names else self.loop

    def visit_FloorDiv(self, node: FloorDiv) -> PrimExpr:
        """Name a quotient."""
        return self._named(self.visit_default(node), "quotient")

    def visit_FloorMod(self, node: FloorMod) -> PrimExpr:
        """Name a remainder."""
        return self._named(self.visit_default(node), "rest")

    def _named(self, node: PrimExpr, hint: str) -> PrimExpr:
        """The variable for a quotient; the quotient itself if it gets none."""
        assert isinstance(node, (FloorDiv, FloorMod))
        if isinstance(node.b, IntImm):
            return node
        if not any(product_divides(node.b, number) for number in self.counted):
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


def name_quotients(func: PrimFunc) -> PrimFunc:
    """The function with names for the quotients of its loops' variables."""
    quotients = collect(func.body, (FloorDiv, FloorMod))
    if all(isinstance(quotient.b, IntImm) for quotient in quotients):
        return func
    return rewrite_body(func, _NameQuotients())


NameQuotients = define_pass("NameQuotients", name_quotients)
